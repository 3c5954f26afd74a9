/** `console`: writes to the log of the running call. */
import type { LogLevel } from '../../../value/logs/log-levels.ts'
import { runningCall } from '../calls.ts'
import { type LogSink, writeLog } from '../logging.ts'

type Numbers = WeakMap<LogSink, Map<string, number>>

function writer(level: LogLevel) {
  return (...parts: unknown[]): void => {
    const sink = runningCall()
    if (sink === null) return
    const [first, ...rest] = parts
    if (rest.length === 0) writeLog(sink, level, first, undefined)
    else if (typeof first !== 'string') writeLog(sink, level, '', parts)
    else writeLog(sink, level, first, rest.length === 1 ? rest[0] : rest)
  }
}

/** Returns the numbers of the running call by label; a discarded map while the script loads. */
function ofCall(numbers: Numbers): Map<string, number> {
  const sink = runningCall()
  const found = sink === null ? undefined : numbers.get(sink)
  if (found !== undefined) return found
  const made = new Map<string, number>()
  if (sink !== null) numbers.set(sink, made)
  return made
}

/** Creates the console. `now` returns milliseconds for its timers. */
export function newConsole(now: () => number) {
  const counts: Numbers = new WeakMap()
  const starts: Numbers = new WeakMap()
  const info = writer('info')
  const error = writer('error')

  function writeElapsed(label: unknown, rest: readonly unknown[]): void {
    const start = ofCall(starts).get(`${label}`)
    if (start !== undefined) info(`${label}: ${now() - start} ms`, ...rest)
  }

  return Object.freeze({
    debug: writer('debug'),
    log: writer('info'),
    info,
    dir: writer('info'),
    dirxml: writer('info'),
    table: writer('info'),
    warn: writer('warn'),
    error,
    trace: writer('debug'),
    assert(condition: unknown, ...parts: unknown[]): void {
      if (!condition) error('assertion failed', ...parts)
    },
    // The lines of a log are not nested.
    group: (...parts: unknown[]) => parts.length > 0 && void info(...parts),
    groupCollapsed: (...parts: unknown[]) => parts.length > 0 && void info(...parts),
    groupEnd(): void {},
    clear(): void {},
    count(label: unknown = 'default'): void {
      const all = ofCall(counts)
      const count = (all.get(`${label}`) ?? 0) + 1
      all.set(`${label}`, count)
      info(`${label}: ${count}`)
    },
    countReset: (label: unknown = 'default') => void ofCall(counts).delete(`${label}`),
    time: (label: unknown = 'default') => void ofCall(starts).set(`${label}`, now()),
    timeLog: (label: unknown = 'default', ...rest: unknown[]) => writeElapsed(label, rest),
    timeEnd(label: unknown = 'default'): void {
      writeElapsed(label, [])
      ofCall(starts).delete(`${label}`)
    },
  })
}
