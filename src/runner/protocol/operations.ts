/**
 * The operations that the code of a Function sends to the server. They come from an untrusted
 * process: every shape is checked here, while values inside stay unchecked JSON until the engine
 * reads them. IDs, cursors and names of any length stay unchecked as well: callers choose them, and
 * an invalid one is rejected in the author's code instead of ending the process.
 */
import { isConfigurationName } from '../../value/configuration.ts'
import { GUEST_SECONDS_MAX } from '../../value/identities.ts'
import { FUNCTION_KINDS, type FunctionKind } from '../../value/manifest.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { decodeFileOperation, type FileOperation } from './file-operations.ts'
import { decodeScheduleOperation, type ScheduleOperation } from './schedule-operations.ts'
import { count, isName, record, sized } from './shapes.ts'

/** Stored JSON as JSON.parse made it, unchecked. */
export type StoredJson = unknown

export interface Bound {
  readonly value: StoredJson
  readonly inclusive: boolean
}

/**
 * The use of the cursor in a reply. `sealed`: the client, which cannot read it and may send it much
 * later; `plain`: the same call, which reads the next page; `none`: no page follows.
 */
export type NextPage = 'sealed' | 'plain' | 'none'

export interface RangeRequest {
  readonly table: string
  /** Null walks the creation order. */
  readonly index: string | null
  /** Values of the first fields of the index. */
  readonly equal: readonly StoredJson[]
  /** Name of the bounded field; absent if there are no bounds. */
  readonly field?: string
  readonly lower?: Bound
  readonly upper?: Bound
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** The cursor of an earlier reply. */
  readonly cursor?: string
  /** The cursor, of the same use, of the last document that is requested. */
  readonly until?: string
  readonly next: NextPage
}

/** A `fetch` request; its body is base64. */
export interface FetchRequest {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | null
  readonly redirect: 'follow' | 'manual' | 'error'
}

/**
 * An operation. Its reply is documents, or Stored JSON: an ID, null, the result of a Function, a
 * bearer token, the usage of limits, the response of a `fetch`, a configuration value or null.
 */
export type Operation =
  | readonly ['get', string]
  | readonly ['range', RangeRequest]
  | readonly ['insert', string, StoredJson]
  | readonly ['patch', string, StoredJson, readonly string[]]
  | readonly ['replace', string, StoredJson]
  | readonly ['delete', string]
  /** Calls another Function with an object of arguments. */
  | readonly ['run', FunctionKind, string, StoredJson]
  | readonly ['usage']
  | readonly ['config', 'variable' | 'secret', string]
  /** The number identifies the request within its call, so that `abort` can name it. */
  | readonly ['fetch', number, FetchRequest]
  | readonly ['abort', number]
  /** The reply is a bearer token that is valid for that number of seconds. */
  | readonly ['issueGuest', number]
  /** The reply is sent after that number of milliseconds. */
  | readonly ['sleep', number]
  | FileOperation
  | ScheduleOperation

/** Tells whether a speculative call continues before the operation is processed. */
export function isPipelined([type]: Operation): boolean {
  return PIPELINED.has(type)
}

const PIPELINED: ReadonlySet<Operation[0]> = new Set([
  'get',
  'range',
  'insert',
  'patch',
  'replace',
  'delete',
])

/** Decodes an operation, without a copy where its shape is right. Throws ValidationError. */
export function decodeOperation(json: unknown): Operation {
  if (!Array.isArray(json)) throw new ValidationError('an operation')
  const [type, first, second, third] = json as readonly unknown[]
  if (type === 'range') {
    sized(json, 2)
    return [type, range(first)]
  }
  if (type === 'usage') {
    sized(json, 1)
    return [type]
  }
  if (type === 'issueGuest') {
    sized(json, 2)
    const seconds = count(first)
    if (seconds < 1 || seconds > GUEST_SECONDS_MAX)
      throw new ValidationError('the lifetime of a guest')
    return [type, seconds]
  }
  if (type === 'abort' || type === 'sleep') {
    sized(json, 2)
    return [type, count(first)]
  }
  if (type === 'fetch') {
    sized(json, 3)
    return [type, count(first), fetchRequest(second)]
  }
  const file = decodeFileOperation(json)
  if (file !== null) return file
  const schedule = decodeScheduleOperation(json)
  if (schedule !== null) return schedule
  if (typeof first !== 'string') throw new ValidationError('a name or an ID')
  switch (type) {
    case 'config':
      sized(json, 3)
      return configurationRead(first, second)
    case 'get':
    case 'delete':
      sized(json, 2)
      return json as unknown as Operation
    case 'insert':
    case 'replace':
      sized(json, 3)
      return json as unknown as Operation
    case 'patch':
      sized(json, 4)
      if (!Array.isArray(third) || !third.every(isText))
        throw new ValidationError('names of fields')
      return json as unknown as Operation
    case 'run':
      sized(json, 4)
      if (typeof second !== 'string') throw new ValidationError('a Function')
      return [type, functionKind(first), second, third]
    default:
      throw new ValidationError('a known operation')
  }
}

const RANGE_KEYS: ReadonlySet<string> = new Set([
  'table',
  'index',
  'equal',
  'field',
  'lower',
  'upper',
  'order',
  'limit',
  'cursor',
  'until',
  'next',
])

function range(json: unknown): RangeRequest {
  const request = record(json, RANGE_KEYS)
  const fits =
    isName(request.table) &&
    (request.index === null || isName(request.index)) &&
    Array.isArray(request.equal) &&
    request.equal.length <= 32 &&
    (request.field === undefined || isName(request.field)) &&
    (request.order === 'asc' || request.order === 'desc') &&
    Number.isSafeInteger(request.limit) &&
    (request.limit as number) >= 1 &&
    (request.cursor === undefined || isText(request.cursor)) &&
    (request.until === undefined || isText(request.until)) &&
    (request.next === 'sealed' || request.next === 'plain' || request.next === 'none')
  if (!fits) throw new ValidationError('a range')
  for (const side of [request.lower, request.upper]) {
    if (side === undefined) continue
    const bound = record(side, BOUND_KEYS)
    if (bound.value === undefined || typeof bound.inclusive !== 'boolean') {
      throw new ValidationError('a bound')
    }
  }
  return request as unknown as RangeRequest
}

const BOUND_KEYS: ReadonlySet<string> = new Set(['value', 'inclusive'])

function configurationRead(kind: string, name: unknown): Operation {
  if (typeof name !== 'string' || !isConfigurationName(name)) throw new ValidationError('a name')
  if (kind !== 'variable' && kind !== 'secret') throw new ValidationError('a variable or a secret')
  return ['config', kind, name]
}

function functionKind(name: string): FunctionKind {
  const kind = FUNCTION_KINDS.find((known) => known === name)
  if (kind === undefined) throw new ValidationError('a kind of Function')
  return kind
}

const FETCH_KEYS: ReadonlySet<string> = new Set(['url', 'method', 'headers', 'body', 'redirect'])

function fetchRequest(json: unknown): FetchRequest {
  const request = record(json, FETCH_KEYS)
  const fits =
    typeof request.url === 'string' &&
    isName(request.method) &&
    Array.isArray(request.headers) &&
    request.headers.every(isPair) &&
    (request.body === null || typeof request.body === 'string') &&
    (request.redirect === 'follow' || request.redirect === 'manual' || request.redirect === 'error')
  if (!fits) throw new ValidationError('a request')
  return request as unknown as FetchRequest
}

function isPair(json: unknown): boolean {
  return Array.isArray(json) && json.length === 2 && json.every(isText)
}

function isText(json: unknown): json is string {
  return typeof json === 'string'
}
