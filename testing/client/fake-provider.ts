/**
 * An identity provider as a native client sees it: it has one user who always agrees, checks PKCE,
 * and accepts each code once. The issuer is an HTTPS name that only `fetch` of this class resolves.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sha256 } from '../../src/system/digests.ts'
import { realSystem } from '../../src/system/system.ts'
import { encodeBase64Url } from '../../src/value/base64url.ts'
import type { Json } from '../../src/value/strict-json.ts'
import type { Recorded, Reply } from './fake-server.ts'

const system = realSystem()
export const ISSUER = 'https://idp.test/tenant'
export const RESOURCE = 'https://api.test/operators'

export class FakeProvider {
  readonly requests: Recorded[] = []
  readonly accessToken = `eyJhbGciOiJFUzI1NiJ9.${encodeBase64Url(system.randomBytes(60))}.c2ln`
  /** Parameters of the redirect back to the client, from those of the authorization request. */
  answer: (parameters: URLSearchParams, code: string) => Record<string, string>
  /** Replaces the response of the token endpoint, unless it returns null. */
  tokenReply: () => Reply | 'drop' | null = () => null
  metadata: () => Reply = () => ({
    status: 200,
    body: { issuer: ISSUER, authorization_response_iss_parameter_supported: true },
  })
  resource: string | null = RESOURCE
  #origin = ''
  readonly #codes = new Map<string, URLSearchParams>()
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  constructor() {
    this.answer = (parameters, code) => ({
      code,
      state: parameters.get('state') ?? '',
      iss: ISSUER,
    })
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', () => resolve()))
    this.#origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  get origin(): string {
    return this.#origin
  }

  /** The OIDC configuration that the management server gives to its clients. */
  get config(): { [key: string]: Json } {
    return {
      version: 1,
      issuer: ISSUER,
      authorizationEndpoint: `${this.#origin}/authorize?tenant=a%26b`,
      tokenEndpoint: `${this.#origin}/token`,
      clientId: 'svc-cli',
      scopes: ['openid', 'operators'],
      resource: this.resource,
    }
  }

  readonly fetch = (url: string, init: RequestInit): Promise<Response> =>
    fetch(url.startsWith(`${ISSUER}/`) ? url.replace('https://idp.test', this.#origin) : url, init)

  /** Returns the requests to this path with any query, oldest first. */
  requestsTo(path: string): Recorded[] {
    return this.requests.filter((each) => each.path.split('?')[0] === path)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const body = Buffer.concat(chunks).toString('utf8')
    this.requests.push({ method, path: url, headers, body })
    const reply = this.#route(new URL(url, this.#origin), body)
    if (reply === 'drop') {
      response.destroy()
      return
    }
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
    response.end(reply.text ?? JSON.stringify(reply.body ?? {}))
  }

  #route({ pathname, searchParams }: URL, body: string): Reply | 'drop' {
    if (pathname === '/tenant/.well-known/openid-configuration') return this.metadata()
    if (pathname === '/authorize') {
      const code = encodeBase64Url(system.randomBytes(24))
      this.#codes.set(code, searchParams)
      const back = new URL(searchParams.get('redirect_uri') ?? '')
      back.search = new URLSearchParams(this.answer(searchParams, code)).toString()
      return { status: 302, headers: { location: back.href } }
    }
    return this.tokenReply() ?? this.#token(new URLSearchParams(body))
  }

  #token(form: URLSearchParams): Reply {
    const authorization = this.#codes.get(form.get('code') ?? '')
    this.#codes.delete(form.get('code') ?? '')
    const challenge = encodeBase64Url(sha256(form.get('code_verifier') ?? ''))
    const matches =
      authorization !== undefined &&
      authorization.get('code_challenge') === challenge &&
      authorization.get('redirect_uri') === form.get('redirect_uri') &&
      authorization.get('resource') === form.get('resource')
    if (!matches) return { status: 400, body: { error: 'invalid_grant' } }
    const body = { access_token: this.accessToken, token_type: 'Bearer', expires_in: 300 }
    return { status: 200, body: { ...body, id_token: 'unused' } }
  }
}
