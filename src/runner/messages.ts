/**
 * The frames between the server and a runner: u32le length, then a JSON array in UTF-8. What a
 * runner sends is hostile, so `decodeFromRunner` checks every shape; values inside stay unchecked
 * JSON until the engine reads them.
 */
import { Malformed } from '../value/malformed.ts'
import type { FunctionKind } from '../value/manifest.ts'

/** Bytes of one frame of a runner, without its length; one that says more ends the runner. */
export const FRAME_BYTES_MAX = 16 * 1024 * 1024
export const LOG_LINES_MAX = 256
/** Characters of one log line, data included. */
export const LOG_CHARACTERS_MAX = 4_096
/** Characters of an error's message or stack. */
export const ERROR_CHARACTERS_MAX = 8_192

/** Argument of a runner that tries to escape before it greets, and says how that went. */
export const SELF_TEST_FLAG = '--self-test'
/** Stands in a runner's progress record for the loading of its script. */
export const LOADING = 0xffff_ffff

/** Stored JSON as JSON.parse made it: not checked. */
export type StoredJson = unknown

export interface Bound {
  readonly value: StoredJson
  readonly inclusive: boolean
}

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
  /** Whether the cursor leaves the invocation, so that it must outlive it. */
  readonly paginate: boolean
}

/** Replies are Stored JSON: a document or null; `{documents, done, cursor}`; an ID; null. */
export type Operation =
  | readonly ['get', string]
  | readonly ['range', RangeRequest]
  | readonly ['insert', string, StoredJson]
  | readonly ['patch', string, StoredJson, readonly string[]]
  | readonly ['replace', string, StoredJson]
  | readonly ['delete', string]

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export interface LogLine {
  readonly level: LogLevel
  readonly message: string
  /** JSON text; null where the line has no data. */
  readonly data: string | null
}

export interface ErrorReport {
  readonly name: string
  readonly message: string
  /** Frames only, one a line, places in the loaded script. */
  readonly stack: string
}

export interface CallUsage {
  readonly usedClock: boolean
  readonly usedRandom: boolean
  /** As the runner counted them: for metrics, not for bounds. */
  readonly cpuMicros: number
  readonly logs: readonly LogLine[]
}

/** What holds a runner, as it says itself; the self-test and the server's own look verify it. */
export interface Containment {
  /** The version of Landlock in force; 0 without. */
  readonly landlock: number
  readonly seccomp: boolean
  /** Whether it runs as another user than root. */
  readonly unprivileged: boolean
  /** macOS. */
  readonly seatbelt: boolean
}

/** Name of a probe of self-tests.ts, and whether it was stopped. */
export type ProbeResult = readonly [name: string, stopped: boolean]

export type FromRunner =
  | {
      readonly type: 'hello'
      readonly containment: Containment
      readonly probes: readonly ProbeResult[] | null
    }
  | { readonly type: 'loaded' }
  | { readonly type: 'loadFailed'; readonly error: ErrorReport }
  | { readonly type: 'description'; readonly call: number; readonly description: unknown }
  | {
      readonly type: 'operation'
      readonly call: number
      readonly id: number
      readonly op: Operation
    }
  | {
      readonly type: 'returned'
      readonly call: number
      readonly result: StoredJson
      readonly usage: CallUsage
    }
  | {
      readonly type: 'failed'
      readonly call: number
      readonly code: string
      readonly usage: CallUsage
    }
  | {
      readonly type: 'threw'
      readonly call: number
      readonly error: ErrorReport
      readonly usage: CallUsage
    }
  | {
      readonly type: 'limit'
      readonly call: number
      readonly limit: 'cpu' | 'result'
      readonly usage: CallUsage
    }

export interface LoadLimits {
  /** Milliseconds of its own CPU that one call may take. */
  readonly cpuMillis: number
  readonly resultBytes: number
}

/** One call as the server sends it. */
export interface InvokeRequest {
  readonly function: string
  readonly kind: FunctionKind
  /** Stored JSON text of an object. */
  readonly argumentsText: string
  readonly nowMicros: bigint
  /** 64 hex characters. */
  readonly seed: string
}

export function encodeLoad(source: string, limits: LoadLimits): string {
  return JSON.stringify(['load', source, limits])
}

export function encodeDescribe(call: number): string {
  return `["describe",${call}]`
}

/** The arguments are spliced: the server made that text itself. */
export function encodeInvoke(call: number, request: InvokeRequest): string {
  const { kind, nowMicros, seed, argumentsText } = request
  const name = JSON.stringify(request.function)
  return `["invoke",${call},${name},"${kind}","${nowMicros}","${seed}",${argumentsText}]`
}

export function encodeReply(call: number, operation: number, storedText: string): string {
  return `["reply",${call},${operation},${storedText}]`
}

export function encodeRefusal(
  call: number,
  operation: number,
  error: { readonly name: string; readonly message: string },
): string {
  return JSON.stringify(['refuse', call, operation, error.name, error.message])
}

/** The call is over for the server: the runner forgets it and sends nothing more about it. */
export function encodeCancel(call: number): string {
  return `["cancel",${call}]`
}

/** One frame of a runner. Throws Malformed. */
export function decodeFromRunner(text: string): FromRunner {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Malformed('JSON')
  }
  if (!Array.isArray(json)) throw new Malformed('an array')
  const type: unknown = json[0]
  switch (type) {
    case 'operation':
      sized(json, 4)
      return { type, call: count(json[1]), id: count(json[2]), op: operation(json[3]) }
    case 'returned':
      sized(json, 4)
      return { type, call: count(json[1]), result: json[2], usage: usage(json[3]) }
    case 'failed':
      sized(json, 4)
      return { type, call: count(json[1]), code: text64(json[2]), usage: usage(json[3]) }
    case 'threw':
      sized(json, 4)
      return { type, call: count(json[1]), error: errorReport(json[2]), usage: usage(json[3]) }
    case 'limit': {
      sized(json, 4)
      const limit: unknown = json[2]
      if (limit !== 'cpu' && limit !== 'result') throw new Malformed('a limit', '$[2]')
      return { type, call: count(json[1]), limit, usage: usage(json[3]) }
    }
    case 'loaded':
      sized(json, 1)
      return { type }
    case 'loadFailed':
      sized(json, 2)
      return { type, error: errorReport(json[1]) }
    case 'description':
      sized(json, 3)
      return { type, call: count(json[1]), description: json[2] }
    case 'hello':
      sized(json, 3)
      return { type, containment: containment(json[1]), probes: probes(json[2]) }
    default:
      throw new Malformed('a known message', '$[0]')
  }
}

function operation(json: unknown): Operation {
  if (!Array.isArray(json)) throw new Malformed('an operation')
  const [type, first, second, third] = json as readonly unknown[]
  if (type === 'range') {
    sized(json, 2)
    return [type, range(first)]
  }
  if (typeof first !== 'string' || first.length > 256) throw new Malformed('a name or an ID')
  switch (type) {
    case 'get':
    case 'delete':
      sized(json, 2)
      return [type, first]
    case 'insert':
    case 'replace':
      sized(json, 3)
      return [type, first, second]
    case 'patch':
      sized(json, 4)
      if (!Array.isArray(third) || third.length > 1_024 || !third.every(isName)) {
        throw new Malformed('names of fields')
      }
      return [type, first, second, third]
    default:
      throw new Malformed('a known operation')
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
  'paginate',
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
    (it.cursor === undefined || (typeof it.cursor === 'string' && it.cursor.length <= 65_536)) &&
    typeof it.paginate === 'boolean'
  if (!fits) throw new Malformed('a range')
  for (const side of [it.lower, it.upper]) {
    if (side === undefined) continue
    const bound = record(side, BOUND_KEYS)
    if (bound.value === undefined || typeof bound.inclusive !== 'boolean') {
      throw new Malformed('a bound')
    }
  }
  return it as unknown as RangeRequest
}

const BOUND_KEYS: ReadonlySet<string> = new Set(['value', 'inclusive'])

/** `[usedClock, usedRandom, cpuMicros, [[level, message, data], ...]]`. */
function usage(json: unknown): CallUsage {
  if (!Array.isArray(json)) throw new Malformed('a usage')
  sized(json, 4)
  const [usedClock, usedRandom, cpuMicros, lines] = json as readonly unknown[]
  if (typeof usedClock !== 'boolean' || typeof usedRandom !== 'boolean') {
    throw new Malformed('a usage')
  }
  if (!Array.isArray(lines) || lines.length > LOG_LINES_MAX) throw new Malformed('log lines')
  return { usedClock, usedRandom, cpuMicros: count(cpuMicros), logs: lines.map(logLine) }
}

function logLine(json: unknown): LogLine {
  if (!Array.isArray(json)) throw new Malformed('a log line')
  const [level, message, data] = json as readonly unknown[]
  const known = level === 'debug' || level === 'info' || level === 'warn' || level === 'error'
  if (!known || typeof message !== 'string' || (data !== null && typeof data !== 'string')) {
    throw new Malformed('a log line')
  }
  if (message.length + (data?.length ?? 0) > LOG_CHARACTERS_MAX) {
    throw new Malformed('a shorter log line')
  }
  return {
    level,
    message: message.toWellFormed(),
    data: data === null ? null : data.toWellFormed(),
  }
}

function errorReport(json: unknown): ErrorReport {
  if (!Array.isArray(json) || !json.every((part) => typeof part === 'string')) {
    throw new Malformed('an error')
  }
  sized(json, 3)
  const [name, message, stack] = json.map((part: string) =>
    part.slice(0, ERROR_CHARACTERS_MAX).toWellFormed(),
  )
  return { name: name!, message: message!, stack: stack! }
}

function containment(json: unknown): Containment {
  const it = record(json, CONTAINMENT_KEYS)
  for (const key of ['seccomp', 'unprivileged', 'seatbelt']) {
    if (typeof it[key] !== 'boolean') throw new Malformed('a containment')
  }
  count(it.landlock)
  return it as unknown as Containment
}

const CONTAINMENT_KEYS: ReadonlySet<string> = new Set([
  'landlock',
  'seccomp',
  'unprivileged',
  'seatbelt',
])

function probes(json: unknown): readonly ProbeResult[] | null {
  if (json === null) return null
  if (!Array.isArray(json) || json.length > 64) throw new Malformed('probes')
  for (const probe of json as readonly unknown[]) {
    const fits = Array.isArray(probe) && isName(probe[0]) && typeof probe[1] === 'boolean'
    if (!fits) throw new Malformed('a probe')
  }
  return json as ProbeResult[]
}

function sized(json: readonly unknown[], length: number): void {
  if (json.length !== length) throw new Malformed(`${length} parts`)
}

function count(json: unknown): number {
  if (typeof json !== 'number' || !Number.isSafeInteger(json) || json < 0) {
    throw new Malformed('a count')
  }
  return json
}

function text64(json: unknown): string {
  if (!isName(json)) throw new Malformed('a short text')
  return json
}

function isName(json: unknown): json is string {
  return typeof json === 'string' && json.length <= 64
}

function record(json: unknown, keys: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new Malformed('an object')
  }
  for (const key of Object.keys(json)) if (!keys.has(key)) throw new Malformed('no unknown field')
  return json as Readonly<Record<string, unknown>>
}
