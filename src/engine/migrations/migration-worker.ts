/**
 * Runs the migrations whose records are running, one batch at a time in the order of their starts.
 * Calls of applications come first: beside them batches are small and leave pauses.
 */
import { isFault } from '../../errors/fault.ts'
import { nextTurn } from '../../system/event-loop.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Traces } from '../../telemetry/traces/spans.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { MigrationManifest } from '../../value/manifest.ts'
import { startRun } from '../invocations/invocation-spans.ts'
import type { Release } from '../releases/executable-release.ts'
import type { Timers } from '../scheduling/timers.ts'
import type { LoadRelease } from '../scheduling/work-runs.ts'
import { BatchSize, type Reaction } from './batch-pacing.ts'
import { type BatchEnd, type Batches, blocked, unknownMigration } from './batches.ts'
import type { MigrationRecord, RecordChange } from './migration-records.ts'

export interface WorkerOptions {
  readonly batches: Pick<Batches, 'run'>
  readonly system: System
  readonly log: Logger
  readonly timers: Timers
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null | undefined
  /** Returns whether applications have called recently. */
  readonly hasCalls: () => boolean
  /** Returns whether the Environment serves. */
  readonly admits: () => boolean
  readonly load: LoadRelease
  /** The record that runs next; null for none. */
  readonly next: () => MigrationRecord | null
  /** Notes the record after a batch. */
  readonly onBatch: (end: BatchEnd) => void
  /** Writes the record if it is still running. */
  readonly change: (id: string, change: RecordChange, failure: string) => Promise<void>
}

/** Codes of a Release whose code can no longer run. */
const LOST_RELEASE = ['PRODUCT_RELEASE_RETIRED', 'PRODUCT_NOT_FOUND', 'PRODUCT_CORRUPT'] as const

export class MigrationWorker {
  readonly #options: WorkerOptions
  #working: Promise<void> | null = null
  #isStopped = false
  #cancelPause: (() => void) | null = null
  /** The sizes by record, for the time that this server runs. */
  readonly #sizes = new Map<string, BatchSize>()
  /** Monotonic milliseconds of the first of the failures in a row; null without one. */
  failingSinceMillis: number | null = null

  constructor(options: WorkerOptions) {
    this.#options = options
  }

  /** Starts what can run, at once. */
  wake(): void {
    this.#cancelPause?.()
    if (this.#working !== null || this.#isStopped) return
    this.#working = this.#work().finally(() => {
      this.#working = null
      // A record may have become running just as the loop ended.
      if (this.#canWork()) this.wake()
    })
  }

  /** Starts no further batch. */
  stop(): void {
    this.#isStopped = true
    this.#cancelPause?.()
  }

  /** Resolves once no batch is in progress. */
  async whenIdle(): Promise<void> {
    while (this.#working !== null) await this.#working
  }

  #canWork(): boolean {
    const { admits, next } = this.#options
    return !this.#isStopped && admits() && next() !== null
  }

  async #work(): Promise<void> {
    while (this.#canWork()) {
      const pause = await this.#step(this.#options.next()!)
      if (pause > 0 && this.#canWork()) await this.#pause(pause)
      else await nextTurn()
    }
  }

  /** Runs one batch. Returns the milliseconds to pause for. Never rejects. */
  async #step(record: MigrationRecord): Promise<number> {
    const { load, hasCalls } = this.#options
    let size = this.#sizes.get(record.id)
    let documents = 0
    const first = { id: null as string | null }
    try {
      const release = await load(record.releaseId as ReleaseId)
      const migration = release.migrations?.get(record.name)
      if (migration === undefined) throw unknownMigration(record.name)
      size ??= new BatchSize(migration.batch)
      this.#sizes.set(record.id, size)
      const isBeside = hasCalls()
      documents = size.next(isBeside)
      const [end, millis] = await this.#run(record, { release, migration, documents, first })
      if (end.record.state !== 'running') this.#sizes.delete(record.id)
      return size.succeeded(isBeside || hasCalls(), millis)
    } catch (error) {
      return this.#react(record, error, { size, documents, documentId: first.id })
    }
  }

  async #run(
    record: MigrationRecord,
    {
      release,
      migration,
      documents: documentsMax,
      first,
    }: {
      readonly release: Release
      readonly migration: MigrationManifest
      readonly documents: number
      readonly first: { id: string | null }
    },
  ): Promise<readonly [BatchEnd, millis: number]> {
    const { batches, system, traces, onBatch } = this.#options
    const attributes = { 'svc.migration.name': record.name, 'svc.release.id': record.releaseId }
    const span = startRun(traces, { name: `migration ${record.name}`, attributes })
    const startedMillis = system.monotonicMillis()
    try {
      const input = { release, migration, documentsMax }
      const end = await batches.run(record.id, input, { first, trace: span })
      this.failingSinceMillis = null
      onBatch(end)
      const { processed } = end
      span?.end({ attributes: { 'svc.migration.documents': processed } })
      return [end, system.monotonicMillis() - startedMillis]
    } catch (error) {
      span?.end({ error: isFault(error) ? error.code : 'INTERNAL' })
      throw error
    }
  }

  async #react(
    record: MigrationRecord,
    error: unknown,
    batch: {
      readonly size: BatchSize | undefined
      readonly documents: number
      readonly documentId: string | null
    },
  ): Promise<number> {
    const { log, system, change } = this.#options
    const { size = new BatchSize(1), documents, documentId } = batch
    const code = isFault(error) ? error.code : null
    const isLost = isFault(error, ...LOST_RELEASE)
    const reaction: Reaction = isLost ? { kind: 'blocked' } : size.failed(code, documents)
    if (reaction.kind === 'halved') return 0
    if (reaction.kind === 'blocked') {
      const detail = (isFault(error) && error.detail) || String(code)
      try {
        await change(record.id, blocked(record, { code: code!, documentId }), detail)
        return 0
      } catch (failure) {
        return this.#react(record, failure, { size: undefined, documents: 1, documentId })
      }
    }
    if (this.failingSinceMillis === null) {
      // One record for the failures in a row: each retry would write another.
      const fields = { migration: record.name, releaseId: record.releaseId }
      log.warn('migration.batch_failed', { ...fields, errorCode: code ?? 'INTERNAL', error })
    }
    this.failingSinceMillis ??= system.monotonicMillis()
    return reaction.afterMillis
  }

  async #pause(millis: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.timers.set(millis, resolve)
      this.#cancelPause = () => {
        cancel()
        resolve()
      }
    })
    this.#cancelPause = null
  }
}
