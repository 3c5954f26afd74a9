/** An HTTP or HTTPS server on 127.0.0.1 that records requests and sends a test's responses. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Certificate } from '../certificates.ts'

export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface RecordedReply {
  readonly status: number
  readonly body: string
}

export class RecordingServer implements Disposable {
  readonly requests: RecordedRequest[] = []
  readonly #server: ReturnType<typeof createServer>
  readonly #secure: boolean

  private constructor(
    answer: (request: RecordedRequest) => RecordedReply,
    certificate: Certificate | null,
  ) {
    const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const { method = '', url = '', headers } = request
      const body = Buffer.concat(chunks).toString('utf8')
      const recorded = { method, path: url, headers, body }
      this.requests.push(recorded)
      const reply = answer(recorded)
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body)
    }
    this.#secure = certificate !== null
    this.#server =
      certificate === null
        ? createServer(listener)
        : createSecureServer({ key: certificate.key, cert: certificate.certificate }, listener)
  }

  static async start(
    answer: (request: RecordedRequest) => RecordedReply,
    certificate: Certificate | null = null,
  ): Promise<RecordingServer> {
    const server = new RecordingServer(answer, certificate)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** `host` is a name of the certificate, if the server has one. */
  origin(host = '127.0.0.1'): string {
    return `${this.#secure ? 'https' : 'http'}://${host}:${this.port}`
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
