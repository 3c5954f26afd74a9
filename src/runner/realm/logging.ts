/** `ctx.log` and `console`: lines that travel with the call's result. */
import type { LogLevel } from '../messages.ts'

export interface LogSink {
  /** `[level, message, data]` of each line, as JSON texts with commas between them. */
  lines: string
  lineCount: number
}

/** Any data as JSON text, for people; throws where it contains itself or its own code throws. */
export function makeInspect() {
  const { stringify } = JSON

  function replace(_key: string, value: unknown): unknown {
    if (typeof value === 'bigint') return `${value}n`
    if (value instanceof Uint8Array) return `<${value.length} bytes>`
    if (value instanceof Map) return Object.fromEntries(value)
    if (value instanceof Set) return [...value]
    if (value instanceof Error) return `${value.name}: ${value.message}`
    return value
  }

  return (data: unknown): string => stringify(data, replace) ?? stringify(`${data as string}`)
}

/** Writes one line; those beyond the bounds are cut or dropped. */
export function makeWriteLog(
  linesMax: number,
  charactersMax: number,
  textOf: ReturnType<typeof makeInspect>,
) {
  const { stringify } = JSON

  function inspect(data: unknown): string {
    try {
      return textOf(data)
    } catch {
      return '"(it contains itself)"'
    }
  }

  /** No array is made a text, since the author may have given all of them a `toJSON`. */
  function add(sink: LogSink, level: LogLevel, text: string, json: string | null): void {
    // Reading the data may have written others.
    if (sink.lineCount >= linesMax) return
    const data = json === null ? 'null' : stringify(json)
    sink.lines += `${sink.lineCount === 0 ? '' : ','}["${level}",${stringify(text)},${data}]`
    sink.lineCount += 1
  }

  return (sink: LogSink, level: LogLevel, message: unknown, data: unknown): void => {
    if (sink.lineCount >= linesMax) return
    if (sink.lineCount === linesMax - 1) {
      add(sink, 'warn', `more than ${linesMax} log lines: the rest is left out`, null)
      return
    }
    const text = (typeof message === 'string' ? message : inspect(message)).slice(0, charactersMax)
    let json = data === undefined ? null : inspect(data)
    if (json !== null && text.length + json.length > charactersMax) {
      // Escaping may double it, so half of the room is what surely fits.
      json = stringify(json.slice(0, Math.max(0, (charactersMax - text.length) >> 1) - 8))
      if (text.length + json.length > charactersMax) json = null
    }
    add(sink, level, text, json)
  }
}

export function makeLog(
  sink: LogSink,
  write: (sink: LogSink, level: LogLevel, message: unknown, data: unknown) => void,
) {
  return Object.freeze({
    debug: (message: unknown, data?: unknown) => write(sink, 'debug', message, data),
    info: (message: unknown, data?: unknown) => write(sink, 'info', message, data),
    warn: (message: unknown, data?: unknown) => write(sink, 'warn', message, data),
    error: (message: unknown, data?: unknown) => write(sink, 'error', message, data),
  })
}

/** `current` answers where the lines of the running call go; null while the code loads. */
export function makeConsole(
  current: () => LogSink | null,
  write: (sink: LogSink, level: LogLevel, message: unknown, data: unknown) => void,
) {
  function to(level: LogLevel) {
    return (...parts: unknown[]): void => {
      const sink = current()
      if (sink === null) return
      const [first, ...rest] = parts
      if (rest.length === 0) write(sink, level, first, undefined)
      else if (typeof first !== 'string') write(sink, level, '', parts)
      else write(sink, level, first, rest.length === 1 ? rest[0] : rest)
    }
  }

  return Object.freeze({
    debug: to('debug'),
    log: to('info'),
    info: to('info'),
    dir: to('info'),
    table: to('info'),
    warn: to('warn'),
    error: to('error'),
    trace: to('debug'),
    assert(condition: unknown, ...parts: unknown[]): void {
      if (!condition) to('error')('assertion failed', ...parts)
    },
  })
}
