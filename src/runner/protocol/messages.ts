/**
 * The frames between the server and a runner: u32le length, then a JSON array in UTF-8. The frames
 * of a runner are untrusted, so `decodeFromRunner` checks every shape; values inside stay unchecked
 * JSON until the engine reads them.
 */
import type { LogLevel } from '../../value/logs/log-levels.ts'
import type { FunctionKind } from '../../value/manifest.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { decodeOperation, isPipelined, type Operation, type StoredJson } from './operations.ts'
import { count, isName, record, sized, text64 } from './shapes.ts'

/** Bytes of one frame of a runner, without its length; a larger frame terminates the runner. */
export const FRAME_BYTES_MAX = 16 * 1024 * 1024
/** @limit Calls: log lines of one call */
export const LOG_LINES_MAX = 256
/** @limit Calls: one log line, data included */
export const LOG_CHARACTERS_MAX = 4_096
/** Characters of the message of an error, and of its stack. */
export const ERROR_CHARACTERS_MAX = 8_192

/** Documents of one call that its result can name; later ones are sent back whole. */
export const NAMED_DOCUMENTS_MAX = 1_024

/** @limit Actions: body of one outgoing request */
export const REQUEST_BYTES_MAX = 8 * 1024 * 1024
/**
 * Characters of the URL and the headers of a `fetch` request: with the body they fit a frame.
 * @limit Actions: URL and headers of one outgoing request
 */
export const REQUEST_HEAD_CHARACTERS_MAX = 1024 * 1024
/** Characters of the pipelined operations that a speculative call gathers for one frame. */
export const PIPELINED_CHARACTERS_MAX = 64 * 1024
/** @limit Actions: timers of one Action */
export const TIMERS_MAX = 1_024

/** Most threads of a runner. The runtime has about ten, which it ends and restarts. */
export const THREADS_MAX = 256
/** Most growth of a runner's memory in bytes, a backstop far above the limits of its calls. */
export const GROWTH_BYTES_MAX = 512 * 1024 * 1024

/** Argument of a runner that attempts escapes before its `hello`, which reports their results. */
export const SELF_TEST_FLAG = '--self-test'
/** The call number of a runner's progress record while it loads its script. */
export const LOADING = 0xffff_ffff

export interface LogLine {
  readonly level: LogLevel
  readonly message: string
  /** JSON text; null if the line has no data. */
  readonly data: string | null
}

export interface ErrorReport {
  readonly name: string
  readonly message: string
  /** One frame on each line, with locations in the loaded script. */
  readonly stack: string
}

export interface CallUsage {
  readonly usedClock: boolean
  readonly usedRandom: boolean
  /** True if the code read the caller's identity. */
  readonly usedIdentity: boolean
  /** CPU time as counted by the runner: for metrics, not for limits. */
  readonly cpuMicros: number
  readonly logs: readonly LogLine[]
}

/** A runner's own report of its sandbox, verified by the self-test and by the server. */
export interface Containment {
  /** The version of Landlock in force; 0 if there is none. */
  readonly landlock: number
  readonly seccomp: boolean
  /** True if it runs as a user other than root. */
  readonly unprivileged: boolean
  /** True if its sandbox profile is in force, on macOS. */
  readonly seatbelt: boolean
}

/** Name of a probe of self-tests.ts, and whether the sandbox stopped it. */
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
  /** Pipelined operations of a speculative call: it assumes their success and awaits no reply. */
  | { readonly type: 'pipelined'; readonly call: number; readonly ops: readonly Operation[] }
  | ({ readonly type: 'returned'; readonly result: StoredJson } & Ended)
  | ({ readonly type: 'failed'; readonly code: string } & Ended)
  | ({ readonly type: 'threw'; readonly error: ErrorReport } & Ended)
  | ({ readonly type: 'limit'; readonly limit: 'cpu' | 'result' } & Ended)
  | ({ readonly type: 'misspeculated'; readonly cause: MisspeculationCause } & Ended)

/**
 * The reason why a call has to be repeated: `failed` where only a synchronous call can report where
 * the failure occurred, `read` where its code looked into a placeholder of a document, `kept` where
 * that was a placeholder of an earlier call.
 */
export type MisspeculationCause = 'failed' | 'read' | 'kept'

/** The part that all ends of a call share. */
interface Ended {
  readonly call: number
  readonly usage: CallUsage
  /** Pipelined operations that were not sent before. */
  readonly pipelined: readonly Operation[]
}

export interface LoadLimits {
  /** CPU milliseconds of one call. */
  readonly cpuMillis: number
  /** UTF-8 bytes of the JSON text of a result. */
  readonly resultBytes: number
  /** True if it runs Actions, which have timers, `fetch` and wall clock. */
  readonly actions: boolean
  /** True if Actions see the time at which they started in place of the wall clock. */
  readonly fixedClock: boolean
}

/** The request for one call of a Function. */
export interface InvokeRequest {
  readonly function: string
  readonly kind: FunctionKind
  /** Stored JSON text of an object. */
  readonly argumentsText: string
  /** JSON text of the FunctionalIdentity that the Function sees, or of null. */
  readonly identityText: string
  readonly nowMicros: bigint
  /** 32 bytes in hexadecimal, from which all randomness of the call is derived. */
  readonly seed: string
}

/** Options of a runner for one call. */
export interface InvokeOptions {
  /**
   * The call of the same runner that this one is part of: that one is charged for its CPU time and
   * ends it. 0 for a root call.
   */
  readonly root: number
  /**
   * The prefetched documents of a speculative call, as `DocumentsReply.items`; null for a
   * synchronous call.
   */
  readonly prefetched: string | null
  /** Ranges whose documents are the last ones of `prefetched`; absent for none. */
  readonly pages?: readonly PrefetchedPage[] | undefined
}

/** A page of a range that a speculative call receives with its arguments. */
export interface PrefetchedPage {
  /** JSON text of the operation that reads it. */
  readonly operation: string
  /** Number of its documents. */
  readonly count: number
  readonly page: Page
}

export function encodeLoad(source: string, limits: LoadLimits): string {
  return JSON.stringify(['load', source, limits])
}

export function encodeDescribe(call: number): string {
  return `["describe",${call}]`
}

/** Splices the texts of the arguments and the identity, which the server made itself. */
export function encodeInvoke(
  call: number,
  request: InvokeRequest,
  { root, prefetched, pages = [] }: InvokeOptions,
): string {
  const { kind, nowMicros, seed, argumentsText, identityText } = request
  const name = JSON.stringify(request.function)
  const header = `"${kind}","${nowMicros}","${seed}",${root}`
  const documents = prefetched === null ? 'null' : `[${prefetched}]`
  const parts = `${argumentsText},${identityText},${documents}`
  const end = pages.length === 0 ? '' : `,[${pages.map(pageText).join()}]`
  return `["invoke",${call},${name},${header},${parts}${end}]`
}

function pageText({ operation, count, page }: PrefetchedPage): string {
  return JSON.stringify([operation, count, page.cursor, page.done])
}

export function encodeReply(call: number, operation: number, storedText: string): string {
  return `["reply",${call},${operation},${storedText}]`
}

/**
 * Encodes documents in reply to an operation. `items` are JSON texts with commas between them: the
 * number of a document that the runner holds, Stored JSON, Stored JSON in an array, which the
 * runner keeps under the next number, or a string for a placeholder. `page` is null in reply to a
 * read by ID, which has no item if there is no such document.
 */
export function encodeDocuments(call: number, operation: number, { items, page }: DocumentsReply) {
  const end = page === null ? '' : `,${JSON.stringify(page.cursor)},${page.done}`
  return `["documents",${call},${operation},[${items}]${end}]`
}

export interface DocumentsReply {
  readonly items: string
  readonly page: Page | null
}

/** The end of one page of a range. */
export interface Page {
  /** The position after the last document that was examined. */
  readonly cursor: string | null
  readonly done: boolean
}

/** Tells the runner that documents with smaller numbers are not named again. */
export function encodeForget(before: number): string {
  return `["forget",0,${before}]`
}

/** The frame after which the runner returns memory that it does not need. */
export const TRIM_FRAME = '["trim",0,0]'

/** The error that is thrown in the code of a Function instead of a reply. */
export interface RejectedOperation {
  readonly name: string
  readonly message: string
  /** The code with which a called Function failed. */
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
  return JSON.stringify(['reject', call, operation, name, message, code, violated])
}

/** Cancels a call: the runner removes it and sends nothing more about it. */
export function encodeCancel(call: number): string {
  return `["cancel",${call}]`
}

/** Decodes one frame of a runner. Throws ValidationError. */
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
    case 'pipelined':
      sized(json, 3)
      return { type, call: count(json[1]), ops: pipelinedOperations(json[2]) }
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
    case 'misspeculated': {
      sized(json, 4)
      const cause: unknown = json[2]
      if (cause !== 'failed' && cause !== 'read' && cause !== 'kept') {
        throw new ValidationError('a cause', '$[2]')
      }
      return { type, call: count(json[1]), cause, ...ended(json[3]) }
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
      throw new ValidationError('a known message', '$[0]')
  }
}

function pipelinedOperations(json: unknown): readonly Operation[] {
  if (!Array.isArray(json) || json.length === 0) throw new ValidationError('operations')
  const operations = json.map(decodeOperation)
  if (!operations.every(isPipelined)) throw new ValidationError('operations that need no reply')
  return operations
}

const NO_OPERATIONS: readonly Operation[] = []

/** Decodes a usage, which is followed by pipelined operations if there are any. */
function ended(json: unknown): Pick<Ended, 'usage' | 'pipelined'> {
  if (!Array.isArray(json)) throw new ValidationError('a usage')
  if (json.length === 5) return { usage: usage(json), pipelined: NO_OPERATIONS }
  sized(json, 6)
  return { usage: usage(json), pipelined: pipelinedOperations(json[5]) }
}

/** Decodes `[usedClock, usedRandom, usedIdentity, cpuMicros, [[level, message, data], ...]]`. */
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
  const isLevel = level === 'debug' || level === 'info' || level === 'warn' || level === 'error'
  if (!isLevel || typeof message !== 'string' || (data !== null && typeof data !== 'string')) {
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
  const fields = record(json, CONTAINMENT_KEYS)
  for (const key of ['seccomp', 'unprivileged', 'seatbelt']) {
    if (typeof fields[key] !== 'boolean') throw new ValidationError('a containment')
  }
  count(fields.landlock)
  return fields as unknown as Containment
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
