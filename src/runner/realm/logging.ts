/** The log of a call: lines of `ctx.log` and `console` that travel with its result. */
import type { LogLevel } from '../../value/logs/log-levels.ts'
import { LOG_CHARACTERS_MAX, LOG_LINES_MAX } from '../protocol/messages.ts'

export interface LogSink {
  /** `[level, message, data]` of each line, as JSON texts with commas between them. */
  lines: string
  lineCount: number
}

const { stringify } = JSON
const { isArray } = Array

function replaceUnserializable(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Uint8Array) return `<${value.length} bytes>`
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (value instanceof Error) return `${value.name}: ${value.message}`
  return value
}

/** Returns data as JSON text for people. Throws if it contains itself or its own code throws. */
export function inspect(data: unknown): string {
  const isPlainArray = isArray(data) && !('toJSON' in data)
  return isPlainArray ? inspectItems(data) : (inspectItem(data) ?? stringify(`${data as string}`))
}

/** Inspects the arguments of `console`, which are mostly texts and numbers. */
function inspectItems(items: readonly unknown[]): string {
  let text = ''
  for (let i = 0; i < items.length; i++) {
    text += `${i === 0 ? '' : ','}${inspectItem(items[i]) ?? 'null'}`
  }
  return `[${text}]`
}

/** Uses the replacer for objects alone: JSON.stringify takes five times as long with one. */
function inspectItem(item: unknown): string | undefined {
  switch (typeof item) {
    case 'string':
    case 'number':
    case 'boolean':
      return stringify(item)
    case 'bigint':
      return `"${item}n"`
    default:
      return stringify(item, replaceUnserializable)
  }
}

function inspectSafely(data: unknown): string {
  try {
    return inspect(data)
  } catch {
    return '"(it contains itself)"'
  }
}

/** Adds a line without making a text of an array: the author may have given them a `toJSON`. */
function addLine(sink: LogSink, level: LogLevel, text: string, json: string | null): void {
  // Reading the data may have written other lines.
  if (sink.lineCount >= LOG_LINES_MAX) return
  const data = json === null ? 'null' : stringify(json)
  sink.lines += `${sink.lineCount === 0 ? '' : ','}["${level}",${stringify(text)},${data}]`
  sink.lineCount += 1
}

/** Writes one line; what exceeds the bounds is cut, or dropped after a last line that says so. */
export function writeLog(sink: LogSink, level: LogLevel, message: unknown, data: unknown): void {
  if (sink.lineCount >= LOG_LINES_MAX) return
  if (sink.lineCount === LOG_LINES_MAX - 1) {
    addLine(sink, 'warn', `more than ${LOG_LINES_MAX} log lines: the rest is left out`, null)
    return
  }
  const whole = typeof message === 'string' ? message : inspectSafely(message)
  const text = whole.slice(0, LOG_CHARACTERS_MAX)
  let json = data === undefined ? null : inspectSafely(data)
  if (json !== null && text.length + json.length > LOG_CHARACTERS_MAX) {
    // Escaping may double the length, so half of the room surely fits.
    json = stringify(json.slice(0, Math.max(0, (LOG_CHARACTERS_MAX - text.length) >> 1) - 8))
    if (text.length + json.length > LOG_CHARACTERS_MAX) json = null
  }
  addLine(sink, level, text, json)
}

/** Makes the `ctx.log` of a call. */
export function newLog(sink: LogSink) {
  return Object.freeze({
    debug: (message: unknown, data?: unknown) => writeLog(sink, 'debug', message, data),
    info: (message: unknown, data?: unknown) => writeLog(sink, 'info', message, data),
    warn: (message: unknown, data?: unknown) => writeLog(sink, 'warn', message, data),
    error: (message: unknown, data?: unknown) => writeLog(sink, 'error', message, data),
  })
}
