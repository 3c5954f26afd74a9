/** Readings of addresses: listeners of this server, public URLs, certificates, the file store. */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect as connectTcp, createServer } from 'node:net'
import { connect as connectTls, type PeerCertificate } from 'node:tls'
import { formatListener, type Listener } from '../../../settings/addresses.ts'
import type { CertificateReading, ListenerReading, PublicUrlReading } from '../readings.ts'

const TIMEOUT_MILLIS = 3_000
const BODY_BYTES_MAX = 1024

/** Tries to open a listener, and closes it at once. */
export function readFreeListener(listen: Listener): Promise<ListenerReading> {
  const address = formatListener(listen)
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve({ address, state: error.code === 'EACCES' ? 'denied' : 'taken' })
    })
    server.listen({ host: listen.host, port: listen.port, exclusive: true }, () => {
      server.close(() => resolve({ address, state: 'free' }))
    })
  })
}

/** Connects to a listener that a running server should have open. */
export function readServedListener(listen: Listener): Promise<ListenerReading> {
  const address = formatListener(listen)
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[listen.host] ?? listen.host
  return new Promise((resolve) => {
    const socket = connectTcp({ host, port: listen.port, timeout: TIMEOUT_MILLIS })
    const end = (state: ListenerReading['state']): void => {
      socket.destroy()
      resolve({ address, state })
    }
    socket.once('connect', () => end('serving'))
    socket.once('error', () => end('silent'))
    socket.once('timeout', () => end('silent'))
  })
}

/** Asks the public URL whether the server lives. Rejects where nothing answers. */
export function readPublicUrl(url: string): Promise<PublicUrlReading> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestHttps : requestHttp
    // Another check evaluates the certificate.
    const options = { timeout: TIMEOUT_MILLIS, rejectUnauthorized: false }
    const sent = send(`${url}/health/live`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
        if (text.length > BODY_BYTES_MAX) response.destroy()
      })
      response.once('close', () => {
        const isThisProduct = response.statusCode === 200 && isLive(text)
        resolve({ url, status: response.statusCode ?? 0, isThisProduct })
      })
    })
    sent.once('timeout', () => sent.destroy(Object.assign(new TypeError(), { code: 'ETIMEDOUT' })))
    sent.once('error', reject)
    sent.end()
  })
}

function isLive(text: string): boolean {
  try {
    return (JSON.parse(text) as { status?: unknown }).status === 'live'
  } catch {
    return false
  }
}

/** Reads the certificate of an HTTPS origin; never rejects. */
export function readCertificate(
  { setting, origin }: Pick<CertificateReading, 'setting' | 'origin'>,
  nowMillis: number,
): Promise<CertificateReading> {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  const unreached = { setting, origin, remainingMillis: null, rejection: null }
  return new Promise((resolve) => {
    const socket = connectTls({
      host,
      port: Number(port || 443),
      // SNI takes names alone.
      ...(/[a-z]/i.test(host) && !host.includes(':') && { servername: host }),
      rejectUnauthorized: false,
      timeout: TIMEOUT_MILLIS,
    })
    const end = (reading: CertificateReading): void => {
      socket.destroy()
      resolve(reading)
    }
    socket.once('secureConnect', () => {
      const certificate: Partial<PeerCertificate> = socket.getPeerCertificate()
      const ends = Date.parse(certificate.valid_to ?? '')
      if (Number.isNaN(ends)) return end(unreached)
      const rejection = socket.authorized ? null : codeOf(socket.authorizationError)
      end({ setting, origin, remainingMillis: ends - nowMillis, rejection })
    })
    socket.once('error', () => end(unreached))
    socket.once('timeout', () => end(unreached))
  })
}

function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown }
  const text = typeof code === 'string' ? code : String(error)
  return /^[A-Z0-9_]+$/.test(text) ? text : 'the certificate is not accepted'
}
