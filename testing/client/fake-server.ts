/**
 * A management and application server in one, as the client sees them: it keeps sessions with
 * rotation and reuse detection, throws real errors with their responses, and records all requests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { assert } from '../../src/errors/assert.ts'
import type { TableCode } from '../../src/errors/codes.ts'
import { Fault } from '../../src/errors/fault.ts'
import { randomSecret, sha256 } from '../../src/system/digests.ts'
import { realSystem } from '../../src/system/system.ts'
import { encodeBase64Url } from '../../src/value/base64url.ts'
import { decodePackage } from '../../src/value/packages/workspace-package.ts'
import type { Json } from '../../src/value/strict-json.ts'
import type { ServingPolicy } from '../../src/wire/serving-policy.ts'
import { FakeConfiguration } from './fake-configuration.ts'
import { FakeIdentity } from './fake-identity.ts'

const system = realSystem()
export const newId = system.ids
export const INVITATION = randomSecret(system, 'rk_inv_v1_')
export const APPLICATION_KEY = randomSecret(system, 'rk_sec_v1_')

export interface Recorded {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Reply {
  readonly status: number
  readonly body?: Json
  readonly headers?: Record<string, string>
  /** The raw body, instead of one of JSON. */
  readonly text?: string
}

/** A test's replacement of the routes: a reply, or a lost connection before or after the effect. */
export type Intercept = (request: Recorded) => Reply | 'drop' | 'drop-after' | null

export class FakeServer {
  readonly projectId = newId.make('prj')
  readonly environmentId = newId.make('env')
  readonly requests: Recorded[] = []
  readonly releases = new Map<string, { state: string; packageDigest: string }>()
  readonly channels = new Map<string, { releaseId: string; revision: number }>()
  /** The body of GET /serving-policy; null if there is none. */
  policy: ServingPolicy | null = null
  lifecycle: 'active' | 'archived' = 'active'
  /** Environments that GET /v1/auth/resources lists. */
  resources = 1
  head: { name: string; revisionId: string; releaseId: string } | null = null
  intercept: Intercept = () => null
  /** Delays a request until its promise resolves. */
  gate: (request: Recorded) => Promise<void> = () => Promise.resolve()
  /** Fields of GET /functions. */
  functions: Json = []
  /** Tagged result of the next calls. */
  result: Json = { type: 'null' }
  readonly identity = new FakeIdentity(newId, INVITATION)
  readonly configuration = new FakeConfiguration(newId)
  methods: string[] = ['invitation', 'browser_oidc', 'helper_token']
  /** Creates the body of GET /v1/auth/oidc/config; null if there is no native client. */
  oidcConfig: (() => { [key: string]: Json }) | null = null
  /** The external token that POST /v1/auth/oidc accepts. */
  externalToken = ''
  /** True if the external identity is linked: its first login consumes an invitation. */
  linked = false
  accessLifetimeMs = 600_000
  managementOrigin: string | null = null
  sessionRevoked = false
  readonly sessionId = newId.make('ops')
  #generation = 0
  #accessToken = ''
  #login: { [key: string]: Json } = {}
  readonly #refreshTokens: string[] = []
  #origin = ''
  readonly #server = createServer((request, response) => void this.#answer(request, response))

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

  get base(): string {
    return `/v1/projects/${this.projectId}/environments/${this.environmentId}`
  }

  get accessToken(): string {
    return this.#accessToken
  }

  get generation(): number {
    return this.#generation
  }

  /** Returns the requests of one route, oldest first. */
  requestsTo(method: string, path: string): Recorded[] {
    return this.requests.filter((each) => each.method === method && each.path === path)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    const { method = '', url = '', headers } = request
    const recorded = { method, path: url, headers, body: bytes.toString('utf8') }
    this.requests.push(recorded)
    await this.gate(recorded)
    const before = this.intercept(recorded)
    if (before === 'drop') {
      response.destroy()
      return
    }
    const reply =
      before !== null && before !== 'drop-after' ? before : this.#replyTo(recorded, bytes)
    if (before === 'drop-after') {
      response.destroy()
      return
    }
    const text = reply.text ?? (reply.body === undefined ? '' : JSON.stringify(reply.body))
    response.writeHead(reply.status, {
      ...(text === '' ? {} : { 'content-type': 'application/json' }),
      ...reply.headers,
    })
    response.end(text)
  }

  #replyTo(request: Recorded, bytes: Buffer): Reply {
    try {
      return this.#route(request, bytes)
    } catch (error) {
      assert(error instanceof Fault, String(error))
      return failure(error.code as TableCode)
    }
  }

  #route({ method, path, headers, body }: Recorded, bytes: Buffer): Reply {
    const route = `${method} ${path.replace(/\?.*/, '').replace(this.base, '{base}')}`
    const json = (): { [key: string]: Json } => JSON.parse(body)
    switch (route) {
      case 'GET /v1/auth/config':
        return ok({
          version: 1,
          methods: this.methods,
          managementOrigin: this.managementOrigin,
        })
      case 'POST /v1/auth/exchange':
        if (json().code !== INVITATION) throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
        return { status: 201, body: this.login() }
      case 'GET /v1/auth/oidc/config':
        if (this.oidcConfig === null) throw new Fault('PLATFORM_NOT_FOUND')
        return ok(this.oidcConfig())
      case 'POST /v1/auth/oidc':
        return this.#externalLogin(headers.authorization, json().code)
      case 'POST /v1/auth/refresh':
        return ok(this.#refresh(String(json().refreshToken)))
      case 'POST /v1/query':
      case 'POST /v1/mutation':
      case 'POST /v1/action':
        return this.#invoke(path.slice(4), headers)
    }
    this.#authenticate(headers.authorization)
    if (route === `DELETE /v1/auth/sessions/${this.sessionId}`) {
      this.sessionRevoked = true
      return { status: 204 }
    }
    const recorded = { method, path, headers, body }
    const identity = this.identity.route(route, recorded, this.#login)
    const known = identity ?? this.configuration.route(route, recorded)
    return known ?? this.#operatorRoute(route, bytes, { headers, json })
  }

  #externalLogin(authorization: string | undefined, code: Json | undefined): Reply {
    const known = this.linked ? code === undefined : code === INVITATION
    if (authorization !== `Bearer ${this.externalToken}` || !known) {
      throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
    }
    const status = this.linked ? 200 : 201
    this.linked = true
    return { status, body: this.login() }
  }

  #operatorRoute(
    route: string,
    bytes: Buffer,
    { headers, json }: { headers: Recorded['headers']; json: () => { [key: string]: Json } },
  ): Reply {
    const [, releaseId] = /^POST \{base\}\/releases\/(\w+)$/.exec(route) ?? []
    const [, channel] = /^PUT \{base\}\/channels\/([a-z0-9-]+)$/.exec(route) ?? []
    const [, clientId] = / \{base\}\/application-clients\/(\w+)\/credentials$/.exec(route) ?? []
    if (route === 'GET /v1/auth/resources') return ok(this.#resources())
    if (route === 'GET {base}/status') return ok(this.status())
    if (route === 'GET {base}/serving-policy' && this.policy !== null) return ok(this.policy)
    if (route === 'POST {base}/workspace/publish') {
      return this.#publish(bytes, String(headers['x-service-expected-head']))
    }
    if (releaseId !== undefined) return this.#validate(releaseId)
    if (channel !== undefined) return this.#promote(channel, json())
    if (route === 'POST {base}/application-clients') {
      return { status: 201, body: { version: 1, client: json(), replayed: false } }
    }
    if (route === 'GET {base}/application-clients') return ok({ version: 1, clients: [] })
    if (clientId !== undefined) return this.#credentials(route, clientId, json)
    if (route === 'GET {base}/functions') {
      return ok({ version: 1, releaseId: newId.make('rel'), functions: this.functions })
    }
    throw new Fault('PLATFORM_NOT_FOUND')
  }

  #authenticate(authorization: string | undefined): void {
    const valid = authorization === `Bearer ${this.#accessToken}` && !this.sessionRevoked
    if (!valid) throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
  }

  /** Creates the tokens of the next generation. */
  login(): { [key: string]: Json } {
    this.#generation++
    this.#accessToken = randomSecret(system, 'rk_at_v1_')
    const refreshToken = `rk_rt_v1_${encodeBase64Url(system.randomBytes(72))}`
    this.#refreshTokens.push(refreshToken)
    const now = system.nowMicros()
    this.#login = {
      version: 1,
      operator: {
        operatorId: newId.make('opr'),
        operatorName: 'owner',
        createdAtMicros: String(now),
      },
      session: {
        sessionId: this.sessionId,
        deviceName: null,
        createdAtMicros: String(now),
        lastUsedAtMicros: String(now),
        accessExpiresAtMicros: String(now + BigInt(this.accessLifetimeMs) * 1000n),
        refreshExpiresAtMicros: String(now + 2_592_000_000_000n),
        current: true,
      },
      grants: [],
      tokenType: 'Bearer',
      accessToken: this.#accessToken,
      refreshToken,
    }
    return this.#login
  }

  /** A valid token of an older generation ends the session, as on the real server. */
  #refresh(token: string): Json {
    const index = this.#refreshTokens.indexOf(token)
    if (index !== -1 && index !== this.#refreshTokens.length - 1) this.sessionRevoked = true
    if (index === -1 || this.sessionRevoked) throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
    return this.login()
  }

  /** Expires the current access token, as ten minutes would. */
  expireAccess(): void {
    this.#accessToken = 'none'
  }

  #resources(): Json {
    const { projectId, environmentId } = this
    const { managementOrigin } = this
    const entry = { projectId, name: 'My App', slug: 'my-app', managementOrigin, capabilities: [] }
    const ids = [environmentId, ...Array.from({ length: 9 }, () => newId.make('env'))]
    return {
      version: 1,
      resources: ids.slice(0, this.resources).map((id) => ({ ...entry, environmentId: id })),
    }
  }

  status(): Json {
    return {
      version: 1,
      revision: '3',
      lifecycle: this.lifecycle,
      workspaces: this.head === null ? [] : [this.head],
      releases: [...this.releases].map(([releaseId, { state, packageDigest }]) => ({
        releaseId,
        state,
        packageDigest,
        createdAtMicros: '1800000000000000',
        provenance: null,
      })),
      channels: [...this.channels].map(([channel, { releaseId, revision }]) => ({
        channel,
        releaseId,
        revision: String(revision),
        history: [],
      })),
      servingPolicy: this.policy && {
        desiredRevision: this.policy.desired.revision,
        observedRevision: this.policy.observed.revision,
      },
    }
  }

  #publish(frame: Buffer, expected: string): Reply {
    const { packageDigest, manifest } = decodePackage(frame, sha256)
    const { workspace } = JSON.parse(manifest)
    const published = { version: 1, workspace, packageDigest }
    const known = this.head !== null && this.releases.get(this.head.releaseId)
    if (known !== null && known && known.packageDigest === packageDigest && expected === 'empty') {
      const { revisionId, releaseId } = this.head!
      return ok({ ...published, revisionId, releaseId, replayed: true })
    }
    if (expected !== (this.head?.revisionId ?? 'empty')) throw new Fault('PRODUCT_CAS_CONFLICT')
    const [revisionId, releaseId] = [newId.make('wsr'), newId.make('rel')]
    this.head = { name: workspace, revisionId, releaseId }
    this.releases.set(releaseId, { state: 'published', packageDigest })
    return { status: 201, body: { ...published, revisionId, releaseId, replayed: false } }
  }

  #validate(releaseId: string): Reply {
    const release = this.releases.get(releaseId)
    if (release === undefined) throw new Fault('PRODUCT_NOT_FOUND')
    release.state = 'validated'
    const checks = [{ name: 'code', outcome: 'passed', detail: '' }]
    const at = { validatedAtMicros: '1800000000000001' }
    return ok({ version: 1, releaseId, state: 'validated', checks, ...at })
  }

  #promote(channel: string, body: { [key: string]: Json }): Reply {
    const current = this.channels.get(channel)
    const expected = body.expectedReleaseId
    if (expected !== undefined && expected !== (current?.releaseId ?? 'empty')) {
      throw new Fault('PRODUCT_CAS_CONFLICT')
    }
    const bound = { releaseId: String(body.releaseId), revision: (current?.revision ?? 0) + 1 }
    this.channels.set(channel, bound)
    return ok({
      version: 1,
      channel,
      releaseId: bound.releaseId,
      previousReleaseId: current?.releaseId ?? null,
      revision: String(bound.revision),
      changedAtMicros: '1800000000000002',
      serving: 'converged',
    })
  }

  #credentials(route: string, clientId: string, json: () => { [key: string]: Json }): Reply {
    if (route.startsWith('GET')) return ok({ version: 1, credentials: [] })
    const credential = {
      ...json(),
      clientId,
      state: 'active',
      revokedAtMicros: null,
      lastUsedAtMicros: null,
      rateLimit: null,
      replaces: null,
    }
    const body = { version: 1, credential, key: APPLICATION_KEY }
    return { status: 201, body: { ...body, secretShownOnce: true, replayed: false } }
  }

  #invoke(kind: string, headers: Recorded['headers']): Reply {
    if (headers['x-service-key'] !== APPLICATION_KEY) throw new Fault('APPLICATION_KEY_INVALID')
    const ids = { requestId: newId.make('req'), releaseId: newId.make('rel') }
    const metadata =
      kind === 'query'
        ? { kind, snapshotSequence: '7' }
        : kind === 'action'
          ? { kind, schedulesCreated: '0' }
          : { kind, commitSequence: '8', replayed: false, attempts: 1 }
    return ok({ version: 1, status: 'ok', ...ids, result: this.result, metadata })
  }
}

export const REQUEST_ID = newId.make('req')

export function failure(code: TableCode | string, status?: number): Reply {
  const fault = new Fault(code as TableCode)
  return {
    status: status ?? fault.status,
    body: {
      version: 1,
      status: 'error',
      requestId: REQUEST_ID,
      error: { code, message: 'Said by the server.', retryable: fault.retryable },
    },
  }
}

function ok(body: Json): Reply {
  return { status: 200, body }
}
