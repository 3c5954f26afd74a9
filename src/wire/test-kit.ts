/**
 * The lines between the test kit, which runs in the process of a test, and the process that hosts
 * its environments. Each line is one message in JSON. Values are tagged (contract/application.md,
 * Canonical tagged values).
 */
import type { Json } from '../value/strict-json.ts'
import { integer, Micros } from './fields.ts'
import { declaredSchema, type Infer, schema } from './schema.ts'

const NAMES_MAX = 1_000
/** The number by which a reply names its request, or a request its environment. */
const Count = integer(1)
const Texts = schema({ '[string]': 'string' })
const Headers = declaredSchema<[string, string][]>([
  [['string', 'string'], '[]'],
  '&',
  `unknown[] <= ${NAMES_MAX}`,
])
/** Longest jump of the simulated clock: 100 years. */
const MILLIS_MAX = 100 * 366 * 86_400_000
const SEED_MAX = 2 ** 53 - 1

/** The caller: an identity, the token of a guest that a Function issued, or anonymous. */
const Provided = schema({
  kind: "'user' | 'service'",
  subject: 'string',
  issuer: 'string',
  roles: 'string[]',
  'email?': 'string',
})
const IssuedGuest = schema({ kind: "'guest'", token: 'string' })
/** A guest by its number in the test. */
const NewGuest = schema({ kind: "'guest'", number: Count })
const Caller = schema([[Provided, '|', 'null'], '|', [IssuedGuest, '|', NewGuest]])
export type Caller = Infer<typeof Caller>

const Open = schema({
  kind: "'open'",
  id: Count,
  /** Directory of the Workspace, or a directory below it. */
  workspace: 'string',
  seed: integer(0, SEED_MAX),
  nowMicros: Micros,
  variables: Texts,
  secrets: Texts,
})
export type OpenRequest = Infer<typeof Open>

const Call = schema({
  kind: "'call'",
  id: Count,
  environment: Count,
  function: 'string',
  functionKind: "'query' | 'mutation' | 'action'",
  arguments: declaredSchema<Json>('unknown'),
  caller: Caller,
})
export type CallRequest = Infer<typeof Call>

/** The request of another service, without its signature. */
const Deliver = schema({
  kind: "'deliver'",
  id: Count,
  environment: Count,
  hook: 'string',
  headers: Headers,
  /** Base64. */
  body: 'string',
  /** The path below the mount, with a query; null for that of the hook. */
  path: 'string | null',
})
export type DeliverRequest = Infer<typeof Deliver>

const Advance = schema({
  kind: "'advance'",
  id: Count,
  environment: Count,
  millis: integer(0, MILLIS_MAX),
  /** Names of the Crons that run meanwhile; null for all. */
  crons: 'string[] | null',
})
const Scheduled = schema({ kind: "'scheduled'", id: Count, environment: Count })
const Documents = schema({ kind: "'documents'", id: Count, environment: Count, table: 'string' })
const Migrate = schema({ kind: "'migrate'", id: Count, environment: Count, name: 'string' })
const Close = schema({ kind: "'close'", id: Count, environment: Count })

/** The response of a test to the request of an Action, or the reason why there is none. */
export const StubbedResponse = schema([
  { status: integer(200, 599), statusText: 'string', headers: Headers, body: 'string' },
  '|',
  { failure: 'string' },
])
export type StubbedResponse = Infer<typeof StubbedResponse>
const Fetched = schema({ kind: "'fetched'", id: Count, response: StubbedResponse })

/** A line that the host reads. */
export const TestRequest = schema([
  [[Open, '|', Call], '|', [Deliver, '|', Advance]],
  '|',
  [[[Scheduled, '|', Documents], '|', Migrate], '|', [Close, '|', Fetched]],
])
export type TestRequest = Infer<typeof TestRequest>

export interface StubbedRequest {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  /** Base64; null without a body. */
  readonly body: string | null
}

export interface TestFailure {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly requestId: string | null
  readonly operationId: string | null
  /** Locations in the Workspace of what a Function threw, the innermost first. */
  readonly trace: readonly string[]
}

/** A line that a Function logged, or the failure of scheduled work. */
export interface TestLogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Name of the Function; empty for a message of the host. */
  readonly function: string
  readonly message: string
  readonly data: Json
}

/** A line that the host writes. */
export type TestReply =
  | { readonly kind: 'hello'; readonly version: string }
  | {
      readonly kind: 'done'
      readonly id: number
      /** The simulated time. */
      readonly nowMicros: string
      readonly value: unknown
    }
  | { readonly kind: 'failed'; readonly id: number; readonly error: TestFailure }
  | {
      readonly kind: 'fetch'
      readonly id: number
      readonly environment: number
      readonly request: StubbedRequest
    }
  | { readonly kind: 'log'; readonly environment: number; readonly line: TestLogLine }

/** The value of a reply to `open`. */
export interface OpenedEnvironment {
  readonly environment: number
  /** Functions by name. */
  readonly functions: Readonly<Record<string, DescribedFunction>>
}

export interface DescribedFunction {
  readonly kind: 'query' | 'mutation' | 'action'
  /** The encoding of the arguments (app-client/shapes.ts). */
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The value of a reply to `deliver`. */
export interface StoredDelivery {
  readonly deliveryId: string
  /** True for an event that was delivered before. */
  readonly replayed: boolean
}

/** The value of a reply to `migrate`: numbers of documents, as decimal text. */
export interface MigratedDocuments {
  readonly processed: string
  readonly changed: string
}

/** An entry of the value of a reply to `scheduled`. */
export interface ScheduledEntry {
  readonly id: string
  readonly function: string
  readonly state: string
  readonly attempts: number
  readonly dueAtMicros: string
  readonly lastErrorCode: string | null
  readonly cron: string | null
  readonly hook: string | null
}
