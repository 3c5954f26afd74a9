/**
 * What the code of a Function asks of the server. It comes from a hostile process: every shape is
 * checked here, while values inside stay unchecked JSON until the engine reads them. So do IDs,
 * cursors and names, of whatever length a frame has room for: callers choose them, and one that is
 * none is refused in the author's code instead of ending the process.
 */
import { isConfigurationName } from '../value/configuration.ts'
import { GUEST_SECONDS_MAX } from '../value/identities.ts'
import { FUNCTION_KINDS, type FunctionKind } from '../value/manifest.ts'
import { ValidationError } from '../value/validation-error.ts'
import { count, isName, record, sized } from './shapes.ts'

/** Stored JSON as JSON.parse made it: not checked. */
export type StoredJson = unknown

export interface Bound {
  readonly value: StoredJson
  readonly inclusive: boolean
}

/**
 * What the reply's cursor is for: the caller, who must not read it and may come back with it much
 * later; this call, which reads on; nothing, where a full page is all that is wanted.
 */
export type NextPage = 'sealed' | 'plain' | 'none'

export interface RangeRequest {
  readonly table: string
  /** Null walks the creation order. */
  readonly index: string | null
  /** Values of the first fields of the index. */
  readonly equal: readonly StoredJson[]
  /** Name of the bounded field; absent without bounds. */
  readonly field?: string
  readonly lower?: Bound
  readonly upper?: Bound
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** From an earlier reply. */
  readonly cursor?: string
  readonly next: NextPage
}

/** A request of `fetch`; its body is base64. */
export interface FetchRequest {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | null
  readonly redirect: 'follow' | 'manual' | 'error'
}

/**
 * Replies are documents, or Stored JSON: an ID; null; a result; a bearer; bounds with what is used
 * of them; a FetchReply; a value of the configuration or null.
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
  /** The number is the call's own name for the request, by which it may be aborted. */
  | readonly ['fetch', number, FetchRequest]
  | readonly ['abort', number]
  /** Answers a bearer that is good for so many seconds. */
  | readonly ['issueGuest', number]
  /** Is answered after so many milliseconds. */
  | readonly ['sleep', number]

/** Whether a call that runs ahead may go on before it is worked. */
export function isPipelined([type]: Operation): boolean {
  return TOLD_AHEAD.has(type)
}

const TOLD_AHEAD: ReadonlySet<Operation[0]> = new Set([
  'get',
  'insert',
  'patch',
  'replace',
  'delete',
])

/** One that is as it should be stays the array that it came in. Throws Malformed. */
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
    if (seconds < 1 || seconds > GUEST_SECONDS_MAX) throw new ValidationError('the life of a guest')
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
  if (typeof first !== 'string') throw new ValidationError('a name or an ID')
  switch (type) {
    case 'config':
      sized(json, 3)
      return configured(first, second)
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
  'next',
])

function range(json: unknown): RangeRequest {
  const it = record(json, RANGE_KEYS)
  const fits =
    isName(it.table) &&
    (it.index === null || isName(it.index)) &&
    Array.isArray(it.equal) &&
    it.equal.length <= 32 &&
    (it.field === undefined || isName(it.field)) &&
    (it.order === 'asc' || it.order === 'desc') &&
    Number.isSafeInteger(it.limit) &&
    (it.limit as number) >= 1 &&
    (it.cursor === undefined || isText(it.cursor)) &&
    (it.next === 'sealed' || it.next === 'plain' || it.next === 'none')
  if (!fits) throw new ValidationError('a range')
  for (const side of [it.lower, it.upper]) {
    if (side === undefined) continue
    const bound = record(side, BOUND_KEYS)
    if (bound.value === undefined || typeof bound.inclusive !== 'boolean') {
      throw new ValidationError('a bound')
    }
  }
  return it as unknown as RangeRequest
}

const BOUND_KEYS: ReadonlySet<string> = new Set(['value', 'inclusive'])

function configured(kind: string, name: unknown): Operation {
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
  const it = record(json, FETCH_KEYS)
  const fits =
    typeof it.url === 'string' &&
    isName(it.method) &&
    Array.isArray(it.headers) &&
    it.headers.every(isPair) &&
    (it.body === null || typeof it.body === 'string') &&
    (it.redirect === 'follow' || it.redirect === 'manual' || it.redirect === 'error')
  if (!fits) throw new ValidationError('a request')
  return it as unknown as FetchRequest
}

function isPair(json: unknown): boolean {
  return Array.isArray(json) && json.length === 2 && json.every(isText)
}

function isText(json: unknown): json is string {
  return typeof json === 'string'
}
