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

/**
 * `current` answers where the lines of the running call go; null while the code loads. What counts
 * and measures does so for each call; `now` answers its milliseconds.
 */
export function makeConsole(
  current: () => LogSink | null,
  write: (sink: LogSink, level: LogLevel, message: unknown, data: unknown) => void,
  now: () => number,
) {
  const counts = new WeakMap<LogSink, Map<string, number>>()
  const starts = new WeakMap<LogSink, Map<string, number>>()
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

  function of(each: WeakMap<LogSink, Map<string, number>>): Map<string, number> {
    const sink = current()
    const found = sink === null ? undefined : each.get(sink)
    if (found !== undefined) return found
    const made = new Map<string, number>()
    if (sink !== null) each.set(sink, made)
    return made
  }

  function measure(label: unknown, rest: readonly unknown[]): void {
    const from = of(starts).get(`${label}`)
    if (from !== undefined) to('info')(`${label}: ${now() - from} ms`, ...rest)
  }

  return Object.freeze({
    debug: to('debug'),
    log: to('info'),
    info: to('info'),
    dir: to('info'),
    dirxml: to('info'),
    table: to('info'),
    warn: to('warn'),
    error: to('error'),
    trace: to('debug'),
    assert(condition: unknown, ...parts: unknown[]): void {
      if (!condition) to('error')('assertion failed', ...parts)
    },
    // Lines of a log stand beside each other.
    group: (...parts: unknown[]) => parts.length > 0 && void to('info')(...parts),
    groupCollapsed: (...parts: unknown[]) => parts.length > 0 && void to('info')(...parts),
    groupEnd(): void {},
    clear(): void {},
    count(label: unknown = 'default'): void {
      const all = of(counts)
      const count = (all.get(`${label}`) ?? 0) + 1
      all.set(`${label}`, count)
      to('info')(`${label}: ${count}`)
    },
    countReset: (label: unknown = 'default') => void of(counts).delete(`${label}`),
    time: (label: unknown = 'default') => void of(starts).set(`${label}`, now()),
    timeLog: (label: unknown = 'default', ...rest: unknown[]) => measure(label, rest),
    timeEnd(label: unknown = 'default'): void {
      measure(label, [])
      of(starts).delete(`${label}`)
    },
  })
}
