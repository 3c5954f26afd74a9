/** The log of the Environment: pages, the stream that follows it, its archive and its pruning. */
import { Fault } from '../../errors/fault.ts'
import type { Cursors } from '../../storage/cursors.ts'
import type { Found, LogFilter } from '../../storage/logs/log-reads.ts'
import type { ArchiveState } from '../../storage/logs/log-rows.ts'
import type { LogStore } from '../../storage/logs/log-store.ts'
import type { System } from '../../system/system.ts'
import type { EnvironmentId, ProjectId } from '../../value/ids.ts'
import { LOG_LEVELS } from '../../value/logs/log-levels.ts'
import type {
  LogArchiveStatus,
  LogFollowQuery,
  LogPruned,
  LogPruneRequest,
  LogRecord,
} from '../../wire/logs.ts'
import { followLog, type LogRecords, type Reauthorize } from './follow.ts'

export interface LogsOptions {
  readonly store: LogStore
  readonly cursors: Cursors
  readonly system: Pick<System, 'monotonicMillis'>
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
}

export interface LogsHealth {
  readonly name: 'logs'
  readonly status: 'healthy' | 'degraded' | 'unavailable'
}

/** The name of the list in a sealed cursor. */
const LIST = '["logs"]'
const CURSOR_PREFIX = 'logc_'
/** @limit Logs: streams that follow one Environment */
export const LOG_FOLLOWERS_MAX = 64

export class Logs {
  readonly #options: LogsOptions
  readonly #stopping = new AbortController()
  #followers = 0

  constructor(options: LogsOptions) {
    this.#options = options
  }

  get environmentId(): EnvironmentId {
    return this.#options.environmentId
  }

  get followers(): number {
    return this.#followers
  }

  /**
   * Returns `degraded` while records or segments cannot be stored, or a segment is missing or
   * damaged; `unavailable` if the log cannot be read, or its writer thread is not started again.
   */
  async health(): Promise<LogsHealth> {
    const { store } = this.#options
    // This notices a removed segment before records are pruned.
    await store.archiveState().catch(() => {})
    if (store.stopped !== null || !store.isReadable()) {
      return { name: 'logs', status: 'unavailable' }
    }
    return { name: 'logs', status: store.degraded === null ? 'healthy' : 'degraded' }
  }

  /**
   * Returns a page. Throws PLATFORM_REQUEST_INVALID for a cursor that this Environment did not
   * issue.
   */
  async page(query: LogFollowQuery, limit: number) {
    const { store } = this.#options
    const filter = filterOf(query)
    const found =
      query.after === undefined
        ? await this.#reading(() => store.newestOf(filter, limit))
        : await this.#after(this.open(query.after), filter, limit)
    const { items, end } = this.#records(found)
    const isLast = query.after === undefined || end >= store.newest
    return { items: [...items], next: isLast ? null : this.cursor(end) }
  }

  /** Returns the matching records after a sequence; the next page starts after `end`. */
  async recordsAfter(sequence: number, query: LogFollowQuery, limit: number): Promise<LogRecords> {
    return this.#records(await this.#after(sequence, filterOf(query), limit))
  }

  /**
   * Returns the lines of a stream that follows the log. It ends once `reauthorize` rejects, the
   * signal is aborted or the server stops. Throws PLATFORM_REQUEST_INVALID for a foreign cursor and
   * PRODUCT_UNAVAILABLE if too many streams are open.
   */
  follow(
    query: LogFollowQuery,
    reauthorize: Reauthorize,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { store, system } = this.#options
    if (this.#followers >= LOG_FOLLOWERS_MAX) {
      throw new Fault('PRODUCT_UNAVAILABLE', { detail: 'too many streams follow the log' })
    }
    // A stream with `since` starts with the oldest record of that time.
    const start = query.since === undefined ? store.newest : 0
    const from = query.after === undefined ? start : this.open(query.after)
    const ended = AbortSignal.any([signal, this.#stopping.signal])
    return this.#counted(
      followLog({ logs: this, store, system, query, from, reauthorize, signal: ended }),
      ended,
    )
  }

  /** Ends every stream. A stream that is opened later ends at once. */
  endFollowers(): void {
    this.#stopping.abort()
  }

  async archiveStatus(): Promise<LogArchiveStatus> {
    const { store } = this.#options
    const state = await this.#reading(() => store.archiveState())
    const range = store.range()
    return {
      version: 1,
      oldestCursor: range === null ? null : this.cursor(range.oldest),
      newestCursor: range === null ? null : this.cursor(range.newest),
      frontier: this.#frontier(state),
      segments: state.segments,
      bytes: String(state.bytes),
    }
  }

  /**
   * Prunes records. Throws PLATFORM_REQUEST_INVALID if the request names another Environment, or
   * applies the pruning without naming this one.
   */
  async prune(request: LogPruneRequest): Promise<LogPruned> {
    const { beforeMicros, maximum, apply = false, environmentId } = request
    const own = this.#options.environmentId
    const isOwn = environmentId === own
    if ((apply && !isOwn) || (environmentId !== undefined && !isOwn)) {
      throw new Fault('PLATFORM_REQUEST_INVALID', {
        violations: [{ path: 'environmentId', rule: 'the Environment of the URL' }],
      })
    }
    const { store } = this.#options
    const { eligible, pruned, archive } = await this.#reading(() =>
      store.prune({ before: Number(beforeMicros), maximum, apply }),
    )
    return { version: 1, eligible, pruned, frontier: this.#frontier(archive), applied: apply }
  }

  cursor(sequence: number): string {
    const bytes = new Uint8Array(8)
    new DataView(bytes.buffer).setBigUint64(0, BigInt(sequence))
    const key = String.fromCharCode(...bytes)
    return CURSOR_PREFIX + this.#options.cursors.seal(LIST, key)
  }

  /** Throws PLATFORM_REQUEST_INVALID. */
  open(cursor: string): number {
    const key = this.#options.cursors.open(LIST, cursor.slice(CURSOR_PREFIX.length))
    if (key === null) {
      throw new Fault('PLATFORM_REQUEST_INVALID', {
        violations: [{ path: 'after', rule: 'a cursor of this log' }],
      })
    }
    const bytes = Uint8Array.from(key, (character) => character.charCodeAt(0))
    return Number(new DataView(bytes.buffer).getBigUint64(0))
  }

  async *#counted(lines: AsyncGenerator<string>, ended: AbortSignal): AsyncGenerator<string> {
    this.#followers += 1
    try {
      if (!ended.aborted) yield* lines
    } finally {
      this.#followers -= 1
    }
  }

  #after(sequence: number, filter: LogFilter, limit: number): Promise<Found> {
    return this.#reading(() => this.#options.store.after(sequence, filter, limit))
  }

  #records({ records, end }: Found): LogRecords {
    return { items: records.map(({ sequence, record }) => this.#record(sequence, record)), end }
  }

  #record(sequence: number, text: string): LogRecord {
    const { projectId, environmentId } = this.#options
    const { atMicros, stream, level, event, message, ...rest } = JSON.parse(text) as LogRecord
    const cursor = this.cursor(sequence)
    const head = { cursor, atMicros, stream, level, event, message }
    return { ...head, ...rest, projectId, environmentId }
  }

  #frontier({ frontier }: ArchiveState): LogArchiveStatus['frontier'] {
    if (frontier === null) return null
    const { sequence, at, verifiedAt } = frontier
    const cursor = this.cursor(sequence)
    return { cursor, atMicros: String(at), verifiedAtMicros: String(verifiedAt) }
  }

  async #reading<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (cause) {
      throw new Fault('PRODUCT_UNAVAILABLE', { detail: 'the log could not be read', cause })
    }
  }
}

function filterOf({ release, request, stream, level, since, ...query }: LogFollowQuery): LogFilter {
  return {
    release,
    request,
    stream,
    function: query.function,
    level: level === undefined ? undefined : LOG_LEVELS.indexOf(level),
    since: since === undefined ? undefined : Number(since),
  }
}
