/**
 * The operational log: one JSON object per line, or text for a terminal. Credentials are redacted
 * by type and, as a second defence, by their prefix. Logging never throws.
 */
import { Fault } from '../errors/fault.ts'
import { type System, TestSystem } from '../system/system.ts'
import { LOG_LEVELS, type LogLevel } from '../value/logs/log-levels.ts'
import {
  escapeCharacter,
  escapeUnsafe,
  jsonEntries,
  jsonRecord,
  jsonText,
} from '../value/logs/record-json.ts'
import { Secret } from '../value/secret.ts'

/**
 * The subjects of an event (contract/management.md, Health, metrics, logs), and any other facts.
 */
export interface LogFields {
  /** A sentence for the operator. Defaults to the name of the event. */
  readonly message?: string | undefined
  readonly stream?: 'platform' | 'function' | 'audit' | undefined
  readonly projectId?: string | null | undefined
  readonly environmentId?: string | null | undefined
  readonly releaseId?: string | undefined
  readonly function?: string | undefined
  readonly requestId?: string | undefined
  readonly invocationId?: string | undefined
  readonly clientId?: string | undefined
  readonly credentialId?: string | undefined
  readonly operatorId?: string | undefined
  readonly sessionId?: string | undefined
  readonly durationMicros?: number | bigint | undefined
  readonly outcome?: string | undefined
  readonly errorCode?: string | undefined
  /** Logged with code, detail and causes for a Fault, otherwise with name, message and stack. */
  readonly error?: unknown
  /** Further facts, but never a body, a token, an argument, a result or a stored value. */
  readonly [name: string]: unknown
}

export interface Logger {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /**
   * Writes the lines that a Function printed in one call, regardless of their levels: a debug line
   * becomes a record of level `info`. Callers can cause any number of them, so those beyond the
   * room of the log are counted as dropped before records are made of them.
   */
  lines(call: LogFields, printed: readonly PrintedLine[]): void
  /** Returns a text as a record would have it: bounded and without the values of secrets. */
  clean(given: string): string
  /** Returns a logger that adds these fields to every record and passes it to the extension. */
  with(fields: LogFields, extension?: LogExtension): Logger
}

export interface PrintedLine {
  readonly level: LogLevel
  readonly message: string
  /** JSON text; null if the line has no data. */
  readonly data: string | null
}

/** A line as its records have it. */
export interface LineTexts {
  readonly level: LogLevel
  /** JSON text. */
  readonly message: string
  /** JSON text; null if the line has no data. */
  readonly data: string | null
}

/** Fields that are bounded and redacted. */
export type CleanFields = { readonly [name: string]: Plain }

/** A second destination of records, beside the sink. */
export interface LogExtension {
  /** Replaces what must not be logged in any text of a record, also in that of the sink. */
  readonly redact: (text: string) => string
  /** Receives every record regardless of its level. Never throws. */
  readonly collect: (record: LogRecord) => void
  /** Receives the lines of a call, which share the fields of the call. Never throws. */
  readonly collectLines: (call: CleanFields, lines: readonly LineTexts[]) => void
  /**
   * Returns how many of `lines` have room, and counts the others as dropped. Never throws.
   */
  readonly admit: (lines: number) => number
}

/** Writes one record, line end included. Calls `onDropped`, at once or later, if it is lost. */
export type LogSink = (line: string, onDropped: () => void) => void

export interface LogOptions {
  readonly system: Pick<System, 'nowMillis'>
  readonly sink: LogSink
  readonly format?: 'json' | 'human'
  /** The lowest level that is written. */
  readonly level?: LogLevel
  readonly fields?: LogFields
  /** Called for a record that could not be written. */
  readonly onDropped?: () => void
  readonly extension?: LogExtension | undefined
}

/** The event of every line that a Function printed. */
export const LINE_EVENT = 'function.log'

/** Bounds of the fields of one event: a value or an error can be of any size and depth. */
const TEXT_LENGTH_MAX = 8192
const ENTRIES_MAX = 64
const DEPTH_MAX = 4
const CREDENTIAL = /\brk_([a-z]{2,4})_v1_[A-Za-z0-9_-]+/g
/** A JWT, such as a functional token. It begins with a JSON object in base64url. */
const JWT = /\beyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g
const DSN_USERINFO = /\b(postgres(?:ql)?:\/\/)[^\s/@"]*@/g
/** Matches every text that one of the three above matches, in one search. */
const SUSPICIOUS = /rk_|eyJ|postgres/
const CONTROL = /[\u0000-\u001f]/g
/** Names that the server itself gives to fields of most records: they need no cleaning. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  'stream',
  'function',
  'durationMicros',
  'data',
  'error',
])
/** Names whose values are IDs that the server made, and need no cleaning either. */
const OWN_IDS: ReadonlySet<string> = new Set([
  'projectId',
  'environmentId',
  'releaseId',
  'requestId',
  'invocationId',
  'clientId',
  'credentialId',
])
/** Names of every record, which fields cannot replace. */
const RESERVED: ReadonlySet<string> = new Set(['at', 'level', 'event', 'message'])

export function createLog(options: LogOptions): Logger {
  const { system, sink, format = 'json', level: minimum = 'info', fields = {}, extension } = options
  const render = format === 'json' ? jsonLine : humanLine
  const renderLines = format === 'json' ? jsonLines : humanLines
  const threshold = LOG_LEVELS.indexOf(minimum)
  const dropped = (): void => options.onDropped?.()
  const clean: Clean = extension === undefined ? text : (given) => extension.redact(text(given))
  const write = (level: LogLevel, event: string, given: LogFields = {}): void => {
    const isWritten = LOG_LEVELS.indexOf(level) >= threshold
    if (!isWritten && extension === undefined) return
    try {
      const at = new Date(system.nowMillis()).toISOString()
      const all: LogFields = { ...fields, ...given }
      const message = clean(all.message ?? event)
      const head = { at, level, event: text(event), message }
      const entry: LogRecord = { ...head, ...cleanFields(all, clean) }
      extension?.collect(entry)
      if (isWritten) sink(render(entry), dropped)
    } catch {
      // A getter that throws must not fail the operation that is being logged.
      dropped()
    }
  }
  const writeLines = (call: LogFields, printed: readonly PrintedLine[]): void => {
    const count = extension?.admit(printed.length) ?? printed.length
    if (count === 0) return
    let written = 0
    try {
      const at = new Date(system.nowMillis()).toISOString()
      const cleaned = cleanFields({ ...fields, ...call }, clean)
      const lines = printed.slice(0, count).map((line) => lineTexts(line, clean))
      extension?.collectLines(cleaned, lines)
      for (const line of renderLines(at, cleaned, lines)) {
        sink(line, dropped)
        written += 1
      }
    } catch {
      for (let i = written; i < count; i++) dropped()
    }
  }
  return {
    debug: (event, given) => write('debug', event, given),
    info: (event, given) => write('info', event, given),
    warn: (event, given) => write('warn', event, given),
    error: (event, given) => write('error', event, given),
    lines: writeLines,
    clean,
    with: (more, added = extension) =>
      createLog({ ...options, fields: { ...fields, ...more }, extension: added }),
  }
}

export interface MemoryLog {
  readonly log: Logger
  /** The records so far, redacted like those of the real log. */
  records(): LogRecord[]
  text(): string
}

/** Creates a log of every level in memory, for tests. */
export function memoryLog(system: Pick<System, 'nowMillis'> = new TestSystem()): MemoryLog {
  const lines: string[] = []
  return {
    log: createLog({ system, sink: (line) => lines.push(line), level: 'debug' }),
    records: () => lines.map((line) => JSON.parse(line) as LogRecord),
    text: () => lines.join(''),
  }
}

export interface LogRecord {
  /** RFC 3339 with milliseconds, UTC. */
  readonly at: string
  readonly level: LogLevel
  readonly event: string
  readonly message: string
  readonly [name: string]: Plain
}

export type Plain =
  | string
  | number
  | boolean
  | null
  | readonly Plain[]
  | { readonly [name: string]: Plain }

/** Returns a text as it may be logged: bounded, well-formed and without anything secret. */
type Clean = (given: string) => string

function cleanFields(fields: LogFields, clean: Clean): CleanFields {
  const out: Record<string, Plain> = {}
  let entries = 0
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined || RESERVED.has(name)) continue
    if (++entries > ENTRIES_MAX) break
    if (OWN_IDS.has(name) && typeof value === 'string') {
      out[name] = value
      continue
    }
    const shown = OWN_NAMES.has(name) ? name : clean(name)
    out[shown] = name === 'error' ? plainError(value, 0, clean) : plain(value, 0, clean)
  }
  return out
}

function lineTexts({ level, message, data }: PrintedLine, clean: Clean): LineTexts {
  return {
    level,
    message: jsonText(clean(message)),
    data: data === null ? null : jsonText(plain(parsedData(data), 0, clean)),
  }
}

/** Parses the data of a line. A hostile runner may send text that is not JSON. */
function parsedData(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

function plain(value: unknown, depth: number, clean: Clean): Plain {
  switch (typeof value) {
    case 'string':
      return clean(value)
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'bigint':
      return clean(value.toString())
    case 'object':
      return value === null ? null : plainObject(value, depth, clean)
    default:
      return `[${typeof value}]`
  }
}

function plainObject(value: object, depth: number, clean: Clean): Plain {
  if (value instanceof Secret) return value.toString()
  if (value instanceof Error) return plainError(value, depth, clean)
  if (value instanceof Uint8Array) return `[${value.length} bytes]`
  if (depth >= DEPTH_MAX) return '[deep]'
  if (Array.isArray(value))
    return value.slice(0, ENTRIES_MAX).map((item) => plain(item, depth + 1, clean))
  const prototype: unknown = Object.getPrototypeOf(value)
  // Only plain data is logged: any other object may hold a connection or a key.
  if (prototype !== Object.prototype && prototype !== null) return '[object]'
  const out: Record<string, Plain> = {}
  for (const [name, item] of Object.entries(value).slice(0, ENTRIES_MAX)) {
    if (item !== undefined) out[clean(name)] = plain(item, depth + 1, clean)
  }
  return out
}

/** Reads known fields alone: the `detail` of a database driver's error has stored values. */
function plainError(error: unknown, depth: number, clean: Clean): Plain {
  if (!(error instanceof Error)) return plain(error, depth, clean)
  const out: Record<string, Plain> = { name: clean(error.name), message: clean(error.message) }
  const code: unknown = 'code' in error ? error.code : undefined
  if (typeof code === 'string') out.code = clean(code)
  if (error instanceof Fault) {
    if (error.detail !== undefined) out.detail = clean(error.detail)
    if (error.violations.length > 0) out.violations = plain([...error.violations], depth + 1, clean)
  }
  if (error.stack !== undefined) out.stack = clean(error.stack)
  if (error.cause !== undefined) {
    out.cause = depth >= DEPTH_MAX ? '[deep]' : plainError(error.cause, depth + 1, clean)
  }
  return out
}

function text(given: string): string {
  const whole = String(given)
  const cut = whole.length > TEXT_LENGTH_MAX ? `${whole.slice(0, TEXT_LENGTH_MAX)}[cut]` : whole
  return redactText(cut).toWellFormed()
}

/** Redacts everything that looks like a credential of svc, a JWT or a database password. */
export function redactText(given: string): string {
  if (!SUSPICIOUS.test(given)) return given
  return given
    .replace(CREDENTIAL, 'rk_$1_v1_[redacted]')
    .replace(JWT, '[redacted JWT]')
    .replace(DSN_USERINFO, '$1[redacted]@')
}

function jsonLine(entry: LogRecord): string {
  return `${jsonRecord(jsonEntries(entry))}\n`
}

type RenderLines = (at: string, call: CleanFields, lines: readonly LineTexts[]) => readonly string[]

/** Renders lines of one call. The JSON of the fields that they have in common is made once. */
const jsonLines: RenderLines = (at, call, lines) => {
  const shared = jsonEntries(call)
  return lines.map(({ level, message, data }) => {
    const head = `"at":"${at}","level":"${serverLevel(level)}","event":"${LINE_EVENT}"`
    const lineLevel = level === 'debug' ? '"lineLevel":"debug"' : ''
    const shown = data === null ? '' : `"data":${data}`
    return `${jsonRecord(head, `"message":${message}`, shared, lineLevel, shown)}\n`
  })
}

const humanLines: RenderLines = (at, call, lines) =>
  lines.map(({ level, message, data }) =>
    humanLine({
      at,
      level: serverLevel(level),
      event: LINE_EVENT,
      message: JSON.parse(message),
      ...call,
      ...(level === 'debug' && { lineLevel: level }),
      ...(data !== null && { data: JSON.parse(data) as Plain }),
    }),
  )

function serverLevel(level: LogLevel): LogLevel {
  return level === 'debug' ? 'info' : level
}

function humanLine(entry: LogRecord): string {
  const { at, level, event, message, error, ...rest } = entry
  const facts = Object.entries(rest).map(([name, value]) => `${name}=${humanValue(value)}`)
  const sentence = message === event ? [] : [message]
  const head = [at, level.padEnd(5), event, ...sentence, ...facts].map(visible).join(' ')
  return `${head}${error === undefined ? '' : humanError(error)}\n`
}

function humanValue(value: Plain): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
}

function humanError(error: Plain): string {
  if (error === null || typeof error !== 'object' || Array.isArray(error)) {
    return ` error=${visible(humanValue(error))}`
  }
  const { name, message, code, detail, stack, cause } = error as { [name: string]: Plain }
  const head = [code ?? name, message, detail].filter((part) => part !== undefined).join(': ')
  const frames = typeof stack === 'string' ? stack.split('\n').filter(isFrame) : []
  const lines = [head, ...frames].map((line) => `\n    ${visible(line)}`).join('')
  return cause === undefined ? lines : `${lines}\n    caused by${humanError(cause)}`
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line)
}

function visible(line: string): string {
  return escapeUnsafe(line.replace(CONTROL, escapeCharacter))
}
