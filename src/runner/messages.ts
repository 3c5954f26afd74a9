/**
 * The frames between the server and a runner: u32le length, then a JSON array in UTF-8. What a
 * runner sends is hostile, so `decodeFromRunner` checks every shape; values inside stay unchecked
 * JSON until the engine reads them.
 */

import type { FunctionKind } from '../value/manifest.ts'
import { ValidationError } from '../value/validation-error.ts'
import { decodeOperation, isPipelined, type Operation, type StoredJson } from './operations.ts'
import { count, isName, record, sized, text64 } from './shapes.ts'

/** Bytes of one frame of a runner, without its length; one that says more ends the runner. */
export const FRAME_BYTES_MAX = 16 * 1024 * 1024
export const LOG_LINES_MAX = 256
/** Characters of one log line, data included. */
export const LOG_CHARACTERS_MAX = 4_096
/** Characters of an error's message or stack. */
export const ERROR_CHARACTERS_MAX = 8_192

/** Bytes of the body of one request of `fetch`. */
export const REQUEST_BYTES_MAX = 8 * 1024 * 1024
/** Characters of its address and its headers: with the body, they fit into a frame. */
export const REQUEST_HEAD_CHARACTERS_MAX = 1024 * 1024
/** Characters of what a call that runs ahead gathers before it tells the server. */
export const PIPELINED_CHARACTERS_MAX = 64 * 1024
/** Timers of one Action. */
export const TIMERS_MAX = 1_024

/** Threads of a runner; the runtime has some ten, ends idle ones and starts them again. */
export const THREADS_MAX = 256
/** Bytes that a runner's memory may grow by; a backstop far above what its calls may add. */
export const GROWTH_BYTES_MAX = 512 * 1024 * 1024

/** Argument of a runner that tries to escape before it greets, and says how that went. */
export const SELF_TEST_FLAG = '--self-test'
/** Stands in a runner's progress record for the loading of its script. */
export const LOADING = 0xffff_ffff

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
  /** Whether it looked at who calls. */
  readonly usedIdentity: boolean
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
  /** Operations of a call that runs ahead: it takes them to succeed, and waits for no reply. */
  | { readonly type: 'told'; readonly call: number; readonly ops: readonly Operation[] }
  | ({ readonly type: 'returned'; readonly result: StoredJson } & Ended)
  | ({ readonly type: 'failed'; readonly code: string } & Ended)
  | ({ readonly type: 'threw'; readonly error: ErrorReport } & Ended)
  | ({ readonly type: 'limit'; readonly limit: 'cpu' | 'result' } & Ended)
  /** Ran ahead and made a mistake that only a call in step can tell the place of. */
  | ({ readonly type: 'void' } & Ended)

/** How a call ended. */
interface Ended {
  readonly call: number
  readonly usage: CallUsage
  /** Operations that it did not tell of before. */
  readonly told: readonly Operation[]
}

export interface LoadLimits {
  /** Milliseconds of its own CPU that one call may take. */
  readonly cpuMillis: number
  readonly resultBytes: number
  /** Whether it runs Actions, which have timers, `fetch` and the time that it is. */
  readonly actions: boolean
}

/** One call as the server sends it. */
export interface InvokeRequest {
  readonly function: string
  readonly kind: FunctionKind
  /** Stored JSON text of an object. */
  readonly argumentsText: string
  /** JSON text of the FunctionalIdentity that it sees, or of null. */
  readonly identityText: string
  readonly nowMicros: bigint
  /** 32 bytes that all randomness of the call comes from, hexadecimal. */
  readonly seed: string
}

/** What a call has beside what it is asked for. */
export interface InvokePlace {
  /**
   * The call that this one is part of, in the same runner: its CPU is charged to that one, and ends
   * with it. 0 for a call of its own.
   */
  readonly root: number
  /**
   * Of a call that runs ahead: the documents that it need not ask for, as `DocumentsReply.items`.
   * Null for one that runs in step.
   */
  readonly ahead: string | null
}

export function encodeLoad(source: string, limits: LoadLimits): string {
  return JSON.stringify(['load', source, limits])
}

export function encodeDescribe(call: number): string {
  return `["describe",${call}]`
}

/** The arguments and the identity are spliced: the server made those texts itself. */
export function encodeInvoke(
  call: number,
  request: InvokeRequest,
  { root, ahead }: InvokePlace,
): string {
  const { kind, nowMicros, seed, argumentsText, identityText } = request
  const name = JSON.stringify(request.function)
  const facts = `"${kind}","${nowMicros}","${seed}",${root}`
  const given = ahead === null ? 'null' : `[${ahead}]`
  return `["invoke",${call},${name},${facts},${argumentsText},${identityText},${given}]`
}

export function encodeReply(call: number, operation: number, storedText: string): string {
  return `["reply",${call},${operation},${storedText}]`
}

/**
 * Documents in reply to an operation: `items` are JSON texts with commas between, each the number
 * of one that the runner holds, or Stored JSON; in an array, it takes the next number. `page` is
 * null for one document by its ID, which is no item where there is none.
 */
export function encodeDocuments(call: number, operation: number, { items, page }: DocumentsReply) {
  const end = page === null ? '' : `,${JSON.stringify(page.cursor)},${page.done}`
  return `["documents",${call},${operation},[${items}]${end}]`
}

export interface DocumentsReply {
  readonly items: string
  readonly page: Page | null
}

/** Of a range. */
export interface Page {
  /** Behind the last document that was looked at. */
  readonly cursor: string | null
  readonly done: boolean
}

/** Documents with smaller numbers are not named again. */
export function encodeForget(before: number): string {
  return `["forget",0,${before}]`
}

/** What is thrown inside the code of a Function in place of a reply. */
export interface RejectedOperation {
  readonly name: string
  readonly message: string
  /** Of a Function that failed. */
  readonly code: string | null
  /** The unique index that a write violates; null for any other error. */
  readonly violated: ViolatedIndex | null
}

export interface ViolatedIndex {
  readonly table: string
  readonly index: string
}

export function encodeRejection(call: number, operation: number, error: RejectedOperation): string {
  const { name, message, code, violated } = error
  return JSON.stringify(['refuse', call, operation, name, message, code, violated])
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
    throw new ValidationError('JSON')
  }
  if (!Array.isArray(json)) throw new ValidationError('an array')
  const type: unknown = json[0]
  switch (type) {
    case 'operation':
      sized(json, 4)
      return { type, call: count(json[1]), id: count(json[2]), op: decodeOperation(json[3]) }
    case 'told':
      sized(json, 3)
      return { type, call: count(json[1]), ops: toldOperations(json[2]) }
    case 'returned':
      sized(json, 4)
      return { type, call: count(json[1]), result: json[2], ...ended(json[3]) }
    case 'failed':
      sized(json, 4)
      return { type, call: count(json[1]), code: text64(json[2]), ...ended(json[3]) }
    case 'threw':
      sized(json, 4)
      return { type, call: count(json[1]), error: errorReport(json[2]), ...ended(json[3]) }
    case 'limit': {
      sized(json, 4)
      const limit: unknown = json[2]
      if (limit !== 'cpu' && limit !== 'result') throw new ValidationError('a limit', '$[2]')
      return { type, call: count(json[1]), limit, ...ended(json[3]) }
    }
    case 'void':
      sized(json, 3)
      return { type, call: count(json[1]), ...ended(json[2]) }
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
      throw new ValidationError('a known message', '$[0]')
  }
}

function toldOperations(json: unknown): readonly Operation[] {
  if (!Array.isArray(json) || json.length === 0) throw new ValidationError('operations')
  const operations = json.map(decodeOperation)
  if (!operations.every(isPipelined)) throw new ValidationError('operations that need no reply')
  return operations
}

const NOTHING_TOLD: readonly Operation[] = []

/** A usage, with what was told behind it where that is anything. */
function ended(json: unknown): Pick<Ended, 'usage' | 'told'> {
  if (!Array.isArray(json)) throw new ValidationError('a usage')
  if (json.length === 5) return { usage: usage(json), told: NOTHING_TOLD }
  sized(json, 6)
  return { usage: usage(json), told: toldOperations(json[5]) }
}

/** `[usedClock, usedRandom, usedIdentity, cpuMicros, [[level, message, data], ...]]`. */
function usage(json: readonly unknown[]): CallUsage {
  const [usedClock, usedRandom, usedIdentity, cpuMicros, lines] = json
  if (typeof usedClock !== 'boolean' || typeof usedRandom !== 'boolean') {
    throw new ValidationError('a usage')
  }
  if (typeof usedIdentity !== 'boolean') throw new ValidationError('a usage')
  if (!Array.isArray(lines) || lines.length > LOG_LINES_MAX) throw new ValidationError('log lines')
  const logs = lines.map(logLine)
  return { usedClock, usedRandom, usedIdentity, cpuMicros: count(cpuMicros), logs }
}

function logLine(json: unknown): LogLine {
  if (!Array.isArray(json)) throw new ValidationError('a log line')
  const [level, message, data] = json as readonly unknown[]
  const known = level === 'debug' || level === 'info' || level === 'warn' || level === 'error'
  if (!known || typeof message !== 'string' || (data !== null && typeof data !== 'string')) {
    throw new ValidationError('a log line')
  }
  if (message.length + (data?.length ?? 0) > LOG_CHARACTERS_MAX) {
    throw new ValidationError('a shorter log line')
  }
  return {
    level,
    message: message.toWellFormed(),
    data: data === null ? null : data.toWellFormed(),
  }
}

function errorReport(json: unknown): ErrorReport {
  if (!Array.isArray(json) || !json.every((part) => typeof part === 'string')) {
    throw new ValidationError('an error')
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
    if (typeof it[key] !== 'boolean') throw new ValidationError('a containment')
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
  if (!Array.isArray(json) || json.length > 64) throw new ValidationError('probes')
  for (const probe of json as readonly unknown[]) {
    const fits = Array.isArray(probe) && isName(probe[0]) && typeof probe[1] === 'boolean'
    if (!fits) throw new ValidationError('a probe')
  }
  return json as ProbeResult[]
}
