/** Converts log records of a local Environment into the events that its author sees. */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { LogRecord, Plain } from '../../telemetry/log.ts'
import type { Json } from '../../value/strict-json.ts'
import { codeFrameOfFile, findLocation } from '../workspace/code-frames.ts'

/** Records that are not shown: they repeat other events, or only operators can act on them. */
const SILENT: ReadonlySet<string> = new Set([
  'invocation.failed',
  'request.rejected',
  'product.release_not_loaded',
  'product.not_warm',
  'server.forwarded_untrusted',
  'server.close_late',
  'schedule.failures',
])

/** Converts a record; returns null if it is not shown. `directory` is the Workspace. */
export function toEvent(record: LogRecord, directory: string): DevelopmentEvent | null {
  const name = textOf(record.function)
  if (record.event === 'function.log') {
    const level = textOf(record.lineLevel ?? record.level)
    const data = (record.data ?? null) as Json
    return { event: 'log', level, function: name, message: record.message, data }
  }
  if (record.event === 'function.failed') {
    const trace = textOf(record.trace).split('\n').filter(isOfAuthor)
    const location = trace.map(findLocation).find((found) => found !== null)
    const frame =
      location === undefined || location === null ? [] : codeFrameOfFile(directory, location)
    const { message } = record
    return { event: 'failed', function: name, message, trace, codeFrame: [...frame] }
  }
  if (record.event === 'schedule.ran' || record.event === 'schedule.failed') return ranOf(record)
  if (record.level !== 'error' && record.level !== 'warn') return null
  if (SILENT.has(record.event)) return null
  return { event: 'notice', message: `${record.message}${detailOf(record.error)}` }
}

/** The next time of a Cron is not part of the record. */
function ranOf(record: LogRecord): DevelopmentEvent {
  const { cron, outcome, durationMicros } = record
  return {
    event: 'ran',
    scheduledId: textOf(record.scheduledId),
    function: textOf(record.function),
    cron: typeof cron === 'string' ? cron : null,
    outcome: textOf(record.errorCode) || 'ok',
    isRepeated: outcome === 'postponed' || outcome === 'transient',
    durationMillis: typeof durationMicros === 'number' ? durationMicros / 1_000 : 0,
    nextRunAtMicros: null,
  }
}

function textOf(value: Plain | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Returns whether a frame is in a file of the author or of a package, not in the runtime. */
function isOfAuthor(frame: string): boolean {
  const location = findLocation(frame)
  return location !== null && location.file !== 'release.js'
}

function detailOf(error: Plain | undefined): string {
  if (error === null || typeof error !== 'object' || Array.isArray(error)) return ''
  const { detail, message } = error as { readonly [name: string]: Plain }
  const text = textOf(detail) || textOf(message)
  return text === '' ? '' : ` ${text}`
}
