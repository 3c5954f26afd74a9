/** Connections to origins: direct or through the tunnel of a proxy, with TLS for HTTPS. */
import { request } from 'node:http'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { literalAddress } from '../../system/guarded-fetch.ts'
import { errorCode } from '../files.ts'
import type { HttpProxy } from './proxies.ts'

const KEEP_ALIVE_MS = 60_000

/** Failures of a server, or of the way to it, that may be over a moment later. */
const PASSING: readonly (string | undefined)[] = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
]

/** The failure to open a connection, before any byte of the request was sent. */
export class ConnectFailure extends Error {
  /** True if another attempt fails in the same way: an unknown name, an untrusted certificate. */
  readonly isLasting: boolean

  constructor(reason: string, isLasting: boolean, cause?: unknown) {
    super(reason, { cause })
    this.name = 'ConnectFailure'
    this.isLasting = isLasting
  }
}

interface Address {
  readonly host: string
  readonly port: number
}

/**
 * Opens a connection for a request to `url` and verifies the certificate. Throws ConnectFailure and
 * the reason of the signal.
 */
export async function connect(
  url: URL,
  proxy: HttpProxy | null,
  signal: AbortSignal,
): Promise<Socket> {
  const secure = url.protocol === 'https:' || url.protocol === 'wss:'
  const host = literalAddress(url.hostname) ?? url.hostname
  const target = { host, port: Number(url.port || (secure ? 443 : 80)) }
  const tunnel = proxy === null ? null : await openTunnel(proxy, target, signal)
  return open(target, { secure, through: tunnel }, signal)
}

async function openTunnel(proxy: HttpProxy, target: Address, signal: AbortSignal): Promise<Socket> {
  const name = `the proxy ${formatAddress(proxy)}`
  let socket: Socket
  try {
    socket = await open(proxy, { secure: proxy.secure, through: null }, signal)
  } catch (error) {
    if (!(error instanceof ConnectFailure)) throw error
    throw new ConnectFailure(`${name}: ${error.message}`, error.isLasting, error)
  }
  const status = await askForTunnel(socket, { proxy, target: formatAddress(target) }, signal)
  if (status >= 200 && status <= 299) return socket
  socket.destroy()
  throw new ConnectFailure(
    status === 0 ? `${name} opened no tunnel` : `${name} responded with HTTP ${status}`,
    status >= 400 && status <= 499,
  )
}

/** Returns the HTTP status of the proxy; 0 if its response is not HTTP. */
function askForTunnel(
  socket: Socket,
  { proxy, target }: { readonly proxy: HttpProxy; readonly target: string },
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({
      method: 'CONNECT',
      path: target,
      headers: {
        host: target,
        ...(proxy.authorization !== null && {
          'proxy-authorization': proxy.authorization.reveal(),
        }),
      },
      createConnection: () => socket,
      signal,
    })
    asked.on('connect', (response) => resolve(response.statusCode ?? 0))
    const end = (): void => (signal.aborted ? reject(signal.reason) : resolve(0))
    asked.on('error', end)
    asked.on('close', end)
    asked.end()
  })
}

function open(
  { host, port }: Address,
  { secure, through }: { readonly secure: boolean; readonly through: Socket | null },
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) throw signal.reason
    const socket = secure
      ? connectTls({
          host,
          port,
          // An address is not a server name; the certificate is then checked against `host`.
          servername: isIP(host) === 0 ? host : '',
          ALPNProtocols: ['http/1.1'],
          ...(through !== null && { socket: through }),
        })
      : connectTcp({ host, port })
    const fail = (error?: Error): void => {
      signal.removeEventListener('abort', abort)
      socket.destroy()
      through?.destroy()
      const code = (error && errorCode(error)) ?? undefined
      const isLasting = code !== undefined && !PASSING.includes(code)
      reject(new ConnectFailure(code ?? 'no connection', isLasting, error))
    }
    const abort = (): void => {
      reject(signal.reason)
      fail()
    }
    signal.addEventListener('abort', abort, { once: true })
    through?.on('error', fail)
    socket.on('error', fail)
    socket.on('close', () => fail())
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      signal.removeEventListener('abort', abort)
      // Actions and validations can take minutes without any traffic.
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
      resolve(socket)
    })
  })
}

function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
