/** A forward proxy on 127.0.0.1 that records every request head and the bytes of every tunnel. */
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Certificate } from '../certificates.ts'

export interface ForwardProxyOptions {
  /** Port of 127.0.0.1 behind each `host:port` that CONNECT may name. */
  readonly tunnels?: Readonly<Record<string, number>>
  /** `user:password` that CONNECT must present; default: no authentication. */
  readonly credentials?: string
  /** Makes clients connect to the proxy itself over TLS. */
  readonly certificate?: Certificate
}

export class ForwardProxy implements Disposable {
  /** `METHOD target` of each request. */
  readonly requests: string[] = []
  /** Everything that clients sent: request heads, and the bytes inside of tunnels. */
  received = ''
  readonly #options: ForwardProxyOptions
  readonly #server: ReturnType<typeof createServer>
  readonly #sockets = new Set<Duplex>()

  private constructor(options: ForwardProxyOptions) {
    this.#options = options
    const { certificate } = options
    const record = (request: IncomingMessage): void => {
      this.requests.push(`${request.method} ${request.url}`)
      this.received += request.rawHeaders.join('\n')
    }
    this.#server =
      certificate === undefined
        ? createServer()
        : createSecureServer({ key: certificate.key, cert: certificate.certificate })
    this.#server.on('request', (request, response) => {
      record(request)
      request.on('data', (chunk: Buffer) => {
        this.received += chunk.toString('latin1')
      })
      request.on('end', () => response.writeHead(200).end('a response of the proxy itself'))
    })
    this.#server.on('connect', (request: IncomingMessage, socket: Duplex) => {
      record(request)
      this.#tunnel(request, socket)
    })
  }

  static async start(options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
    const proxy = new ForwardProxy(options)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #tunnel(request: IncomingMessage, client: Duplex): void {
    const { credentials, tunnels = {} } = this.#options
    const proof = `Basic ${Buffer.from(credentials ?? '').toString('base64')}`
    if (credentials !== undefined && request.headers['proxy-authorization'] !== proof) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n')
      return
    }
    const port = tunnels[request.url ?? '']
    if (port === undefined) {
      client.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
      return
    }
    const upstream = connect({ host: '127.0.0.1', port }, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.on('data', (chunk: Buffer) => {
        this.received += chunk.toString('latin1')
      })
      client.pipe(upstream).pipe(client)
    })
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    }
  }
}
