/**
 * A Function, a table, Crons and a route that use every option of every definition. The types fail
 * here when an option is added, so that the responses that show it are checked too.
 */
import {
  deliveryHeaders,
  type HmacManifest,
  type HookManifest,
} from '../../src/value/http/routes.ts'
import type {
  CronManifest,
  FunctionManifest,
  FunctionUses,
  IndexManifest,
  TableManifest,
} from '../../src/value/manifest.ts'
import type { OptionalJson, ValidatorJson } from '../../src/value/validators.ts'

type Complete<T> = T extends unknown ? Required<T> : never
/** Types of validators without bounds. */
type PlainType = 'null' | 'boolean' | 'timestamp' | 'any'
type BoundedType = Exclude<ValidatorJson['type'], PlainType>
/** The validator of each type, with all of its bounds. */
type EveryValidator = {
  readonly [T in BoundedType]: Complete<Extract<ValidatorJson, { readonly type: T }>>
} & { readonly [T in PlainType]: { readonly type: T } }

const string: EveryValidator['string'] = {
  type: 'string',
  minimumLength: 1,
  maximumLength: 9,
  pattern: '[a-z]+',
}

const optional: Required<OptionalJson> = { type: 'optional', inner: string, default: 'a' }

const FIELDS: EveryValidator & { readonly optional: OptionalJson } = {
  null: { type: 'null' },
  boolean: { type: 'boolean' },
  timestamp: { type: 'timestamp' },
  any: { type: 'any' },
  int64: { type: 'int64', minimum: '-9', maximum: '9223372036854775807' },
  float64: { type: 'float64', minimum: -0.5, maximum: 1e21 },
  string,
  bytes: { type: 'bytes', maximumLength: 16 },
  id: { type: 'id', table: 'notes' },
  literal: { type: 'literal', value: { int64: '1' } },
  array: { type: 'array', items: string, maximumItems: 3 },
  object: { type: 'object', fields: { inner: { type: 'optional', inner: string } } },
  record: { type: 'record', values: string, maximumItems: 3 },
  union: {
    type: 'union',
    members: [
      { type: 'literal', value: { string: 'a' } },
      { type: 'literal', value: { boolean: true } },
    ],
  },
  nullable: { type: 'nullable', inner: string },
  open: { type: 'open', inner: { type: 'union', members: [string] } },
  optional,
}

const USES: Required<FunctionUses> = {
  network: ['api.example.com', 'api.example.com:8443'],
  secrets: ['API_KEY'],
  storage: 'write',
}

/** `compress` is an option of Queries alone; echo.plain of the origins has it. */
export const EVERY_FUNCTION: Required<Omit<FunctionManifest, 'compress'>> = {
  name: 'every.option',
  kind: 'action',
  visibility: 'public',
  clients: ['confidential', 'public'],
  auth: 'optional',
  arguments: FIELDS,
  returns: { type: 'object', fields: FIELDS },
  errors: { A: 'invalid', B: 'forbidden', C: 'not_found', D: 'conflict' },
  uses: USES,
  retry: {
    maximumAttempts: 3,
    backoff: { initialMillis: 1_000, factor: 1.5, maximumMillis: 3_600_000 },
  },
}

const INDEXES: readonly Required<IndexManifest>[] = [
  { name: 'byInteger', fields: ['int64', 'string'], unique: false },
  { name: 'byString', fields: ['string'], unique: true },
]

export const EVERY_TABLE: Required<TableManifest> = {
  name: 'every',
  fields: FIELDS,
  indexes: INDEXES,
}

/** Crons that are not due while the tests run. */
export const EVERY_CRON: readonly Required<CronManifest>[] = [
  {
    name: 'digest',
    schedule: '0 0 29 2 *',
    timeZone: 'UTC',
    everyMillis: null,
    function: 'echo.mutation',
    arguments: {},
    overlap: 'skip',
  },
  {
    name: 'interval',
    schedule: null,
    timeZone: null,
    everyMillis: 86_400_000,
    function: 'echo.action',
    arguments: {},
    overlap: 'queue',
  },
]

const SIGNATURE: Required<HmacManifest> = {
  scheme: 'hmac',
  secret: 'WEBHOOK',
  header: 'x-signature',
  algorithm: 'sha512',
  encoding: 'base64',
  prefix: 'v1=',
  timestampHeader: 'x-time',
  toleranceSeconds: 9,
}

export const EVERY_ROUTE: Required<HookManifest> = {
  kind: 'hook',
  name: 'every-option',
  path: '/hooks/:name',
  methods: ['POST', 'PUT'],
  maximumBytes: 1_000,
  headers: deliveryHeaders(SIGNATURE, ['x-event']),
  verify: SIGNATURE,
  hasOnce: true,
  reply: 'result',
  function: 'every.delivery',
}
