/** The lines of a stream that follows the log: records as they are written, and heartbeats. */
import type { LogStore } from '../../storage/logs/log-store.ts'
import type { System } from '../../system/system.ts'
import type { LogFollowQuery, LogHeartbeat, LogRecord } from '../../wire/logs.ts'

/**
 * Resolves while the caller may follow the log; rejects once its session, grant or operator was
 * revoked or has expired.
 */
export type Reauthorize = () => Promise<void>

export interface LogRecords {
  /** Sorted by sequence. */
  readonly items: readonly LogRecord[]
  /** The last sequence that the page covers. */
  readonly end: number
}

export interface LogPages {
  cursor(sequence: number): string
  recordsAfter(sequence: number, query: LogFollowQuery, limit: number): Promise<LogRecords>
}

export interface FollowOptions {
  readonly logs: LogPages
  readonly store: LogStore
  readonly system: Pick<System, 'monotonicMillis'>
  readonly query: LogFollowQuery
  /** The sequence after which the stream starts. */
  readonly from: number
  readonly reauthorize: Reauthorize
  readonly signal: AbortSignal
}

/** Maximum records of one page. */
const PAGE_RECORDS = 500
/**
 * Maximum interval between checks of the authorization, even without records, so that a stream ends
 * within a second of the end of its session.
 */
export const RECHECK_MILLIS = 750
/**
 * Pause after a page that was not full, so that records gather: each page costs a check of the
 * authorization.
 */
const GATHER_MILLIS = 100
/** The interval of heartbeats in a stream (contract/wire.md, Logs). */
export const HEARTBEAT_MILLIS = 15_000

/** Yields at most a page at a time; the next page is read once the consumer took the last one. */
export async function* followLog(options: FollowOptions): AsyncGenerator<string> {
  const { logs, store, system, query, reauthorize, signal } = options
  let sequence = options.from
  let writtenAtMillis = system.monotonicMillis()
  // The first heartbeat is sent at once: it tells the client that the stream is open, and its
  // start.
  yield heartbeat(logs, sequence)
  while (!signal.aborted) {
    if (!(await isAuthorized(reauthorize)) || signal.aborted) return
    const { items, end } = await logs.recordsAfter(sequence, query, PAGE_RECORDS)
    const advanced = end > sequence
    sequence = Math.max(sequence, end)
    if (items.length > 0) {
      yield items.map((record) => `${JSON.stringify(record)}\n`).join('')
      writtenAtMillis = system.monotonicMillis()
    } else if (system.monotonicMillis() - writtenAtMillis >= HEARTBEAT_MILLIS) {
      yield heartbeat(logs, sequence)
      writtenAtMillis = system.monotonicMillis()
    }
    if (items.length === PAGE_RECORDS) continue
    if (advanced) await pause(GATHER_MILLIS, signal)
    if (store.newest <= sequence) await written(store, signal)
  }
}

function heartbeat(logs: LogPages, sequence: number): string {
  const line: LogHeartbeat = { heartbeat: true, cursor: logs.cursor(sequence) }
  return `${JSON.stringify(line)}\n`
}

async function isAuthorized(reauthorize: Reauthorize): Promise<boolean> {
  try {
    await reauthorize()
    return true
  } catch {
    // The stream ends even if only the identity database does not reply; the client reconnects.
    return false
  }
}

/** Resolves with the next batch, when the authorization is due, or when the stream ends. */
function written(store: LogStore, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const undo = store.onWritten(resolve)
  return Promise.race([promise, pause(RECHECK_MILLIS, signal)]).finally(undo)
}

function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, millis)
    signal.addEventListener('abort', end)
  })
}
