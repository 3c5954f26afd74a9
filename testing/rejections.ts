/** A gateway whose rejections are observed, with a real Product, keys, tokens and documents. */

import { applicationLimits } from '../src/http/rate-limits.ts'
import type { RejectionLog } from '../src/http/rejection-log.ts'
import { realSystem } from '../src/system/system.ts'
import { type LogRecord, type MemoryLog, memoryLog } from '../src/telemetry/log.ts'
import type { ApplicationScope } from '../src/value/application-scopes.ts'
import type { FunctionManifest, TableManifest } from '../src/value/manifest.ts'
import { DeclaredFailure } from './engine/in-process-pool.ts'
import { type GatewayInput, openTestGateway, type TestGateway } from './gateways.ts'
import { functionManifest } from './products.ts'
import { jwtIssuer, jwtProvider } from './providers/jwt-issuers.ts'

/** A text that is as long as a secret, and longer than a name may be. */
export const CANARY = `canary${'Q7'.repeat(19)}`

export interface Tagged {
  readonly type: string
  readonly value?: unknown
}

export const text = (value = CANARY): Tagged => ({ type: 'string', value })
export const entries = (...given: readonly (readonly [key: string, value: Tagged])[]): Tagged => ({
  type: 'object',
  value: given.map(([key, value]) => ({ key, value })),
})

/** Differences of a request from a valid Query of `a.one` with the gateway's own key. */
export interface Sent {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly key?: string | null
  readonly target?: string
  readonly function?: string
  readonly arguments?: Tagged
  readonly operationId?: string
  /** Further fields of the envelope. */
  readonly more?: Readonly<Record<string, unknown>>
  /** Replaces the envelope. */
  readonly body?: string
  readonly peer?: string
}

export interface Answered {
  readonly code: string | undefined
  readonly headers: Headers
  /** Records that the log gained, except those of the Function itself and of level debug. */
  readonly records: readonly LogRecord[]
}

export interface RejectionBench {
  readonly gateway: TestGateway
  readonly rejections: RejectionLog
  readonly memory: MemoryLog
  send(sent?: Sent): Promise<Answered>
  /** Returns the IDs of the credential of a valid key. */
  credentialOf(key: string): ReturnType<typeof namesOf>
  issueKey(scopes?: readonly ApplicationScope[], rateLimit?: number | null): string
  /** Returns the header of a token with these claims. */
  bearer(claims: Record<string, unknown>): Promise<{ readonly authorization: string }>
  close(): Promise<void>
}

const system = realSystem()

const TABLES: readonly TableManifest[] = [
  {
    name: 'names',
    fields: { name: { type: 'string' } },
    indexes: [{ name: 'byName', fields: ['name'], unique: true }],
  },
]

function functions(): FunctionManifest[] {
  const make = (name: string, more: Partial<FunctionManifest> = {}) =>
    functionManifest(name, { clients: ['confidential'], returns: { type: 'any' }, ...more })
  const kind = 'mutation'
  return [
    make('a.hidden', { visibility: 'internal', clients: [] }),
    make('a.large'),
    make('a.one', {
      arguments: {
        n: { type: 'optional', inner: { type: 'int64' } },
        texts: { type: 'optional', inner: { type: 'record', values: { type: 'string' } } },
      },
    }),
    make('a.public', { clients: ['public'] }),
    make('a.user', { auth: 'user' }),
    make('b.fail', { kind, errors: { FULL: 'conflict' } }),
    make('b.insert', { kind }),
    make('b.throw', { kind }),
    make('b.write', { kind, arguments: { text: { type: 'string' } } }),
  ]
}

const HANDLERS: GatewayInput['handlers'] = {
  'a.large': () => 'x'.repeat(8 * 1024 * 1024),
  'a.one': () => 1,
  'b.fail': () => {
    throw new DeclaredFailure('FULL')
  },
  'b.insert': (ctx) => ctx.insert('names', { name: CANARY }),
  'b.throw': () => {
    throw new TypeError('x')
  },
  'b.write': () => null,
}

export async function rejectionBench(): Promise<RejectionBench> {
  const memory = memoryLog()
  const issuer = await jwtIssuer()
  const gateway = await openTestGateway({
    functions: functions(),
    tables: TABLES,
    handlers: HANDLERS,
    providers: [jwtProvider({ keys: { uri: issuer.jwksUri } })],
    limits: applicationLimits(realSystem()),
    log: memory.log,
  })
  return {
    gateway,
    rejections: gateway.rejections,
    memory,
    send: (sent = {}) => send(gateway, memory, sent),
    credentialOf: (key) => namesOf(gateway, key),
    issueKey: (scopes, rateLimit = null) => gateway.issueKey('confidential', rateLimit, scopes),
    async bearer(claims) {
      const token = await issuer.sign(issuer.claims(system.nowMillis(), claims))
      return { authorization: `Bearer ${token}` }
    },
    async close() {
      await Promise.all([gateway.close(), issuer.close()])
    },
  }
}

function namesOf({ harness }: TestGateway, key: string) {
  const { clientId, credentialId } = harness.product.keys.authenticate(key)!
  return { clientId, credentialId }
}

async function send(gateway: TestGateway, memory: MemoryLog, sent: Sent): Promise<Answered> {
  const before = memory.records().length
  const { path = '/v1/query', method = 'POST', key = gateway.key, peer } = sent
  const envelope = {
    version: 1,
    target: sent.target ?? 'channel:production',
    function: sent.function ?? 'a.one',
    arguments: sent.arguments ?? entries(),
    ...(path === '/v1/mutation' && { operationId: sent.operationId ?? system.ids.make('opn') }),
    ...sent.more,
  }
  const request = new Request(`http://app.test${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(key !== null && { 'x-service-key': key }),
      ...sent.headers,
    },
    ...(method === 'POST' && { body: sent.body ?? JSON.stringify(envelope) }),
  })
  const binding = peer === undefined ? {} : { peer }
  const response = await gateway.application.fetch(request, binding)
  const answer = (await response.json().catch(() => ({}))) as {
    readonly error?: { readonly code: string }
  }
  const gained = memory.records().slice(before)
  const isCounted = ({ event, level }: LogRecord) =>
    event !== 'function.failed' && level !== 'debug'
  return {
    code: answer.error?.code,
    headers: response.headers,
    records: gained.filter(isCounted),
  }
}
