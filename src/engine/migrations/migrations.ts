/**
 * The migrations of one Environment, as operators see them: their progress, which is kept in memory
 * beside the documents, and the actions that change it.
 */
import { assert } from '../../errors/assert.ts'
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Traces } from '../../telemetry/traces/spans.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { MigrationManifest } from '../../value/manifest.ts'
import { DRY_RUN_DOCUMENTS, type MigrationAction } from '../../value/migrations/migrations.ts'
import type { CallAdmission } from '../admission/call-admission.ts'
import type { SystemDocuments } from '../files/system-documents.ts'
import type { Release } from '../releases/executable-release.ts'
import { REAL_TIMERS, type Timers } from '../scheduling/timers.ts'
import type { LoadRelease } from '../scheduling/work-runs.ts'
import type { HealthStatus } from '../usage/health.ts'
import { type BatchEnd, Batches, type BatchesOptions, type DocumentPreview } from './batches.ts'
import {
  changeRecord,
  insertRecord,
  isUnfinished,
  type MigrationRecord,
  type RecordChange,
  readAllRecords,
  readRecord,
  startedRecord,
} from './migration-records.ts'
import { MigrationWorker } from './migration-worker.ts'

/** The parts of the Product that migrations need. */
export interface MigrationHost {
  /** Loads the Release whose code runs. Rejects with a Fault where it cannot. */
  readonly load: LoadRelease
  /** Returns whether the Environment serves. */
  readonly admits: () => boolean
  /** Returns whether the Release is retired. Absent if Releases never are. */
  readonly isRetired?: (releaseId: ReleaseId) => boolean
}

export interface MigrationsOptions extends BatchesOptions {
  readonly documents: SystemDocuments
  readonly calls: Pick<CallAdmission, 'hasCalls'>
  readonly system: System
  readonly log: Logger
  /** Default: the timers of the runtime. */
  readonly timers?: Timers
  readonly traces?: Traces | null | undefined
}

export interface MigrationStatistics {
  readonly running: number
  readonly blocked: number
  /** Documents since the start of the server. */
  readonly processed: number
  readonly changed: number
}

/** A change of the state of a migration. `failure` is for the log of the server. */
export type MigrationListener = (record: MigrationRecord, failure: string | null) => void

/** Waits until a migration no longer runs. */
interface Waiter {
  readonly id: string
  readonly resolve: (stopped: StoppedMigration) => void
  readonly reject: (error: unknown) => void
}

export interface StoppedMigration {
  readonly record: MigrationRecord
  /** The error of a document that stopped it; null for none. */
  readonly failure: string | null
}

type RunAction = Exclude<MigrationAction, 'dry-run'>
type State = MigrationRecord['state']

/** The states that each action changes, and those in which it has nothing to do. */
const TRANSITIONS: Readonly<Record<RunAction, { from: readonly State[]; done: readonly State[] }>> =
  {
    run: { from: ['canceled'], done: ['running', 'complete'] },
    pause: { from: ['running'], done: ['paused'] },
    resume: { from: ['paused', 'blocked'], done: ['running'] },
    cancel: { from: ['running', 'paused', 'blocked'], done: ['canceled'] },
  }

/** A failure that lasts for so long needs an operator. */
const UNAVAILABLE_MILLIS = 10_000

export class Migrations {
  readonly #options: MigrationsOptions
  readonly #batches: Batches
  readonly #worker: MigrationWorker
  readonly #records = new Map<string, MigrationRecord>()
  /** First runs that are being stored, by digest: a second record would pass documents twice. */
  readonly #starts = new Map<string, Promise<MigrationRecord>>()
  /** Releases of migrations that are about to be stored: they must not be retired meanwhile. */
  readonly #starting = new Map<string, number>()
  readonly #listeners: MigrationListener[] = []
  readonly #waiters = new Set<Waiter>()
  /** The errors of blocked migrations by record, for the time that this server runs. */
  readonly #failures = new Map<string, string>()
  #isStopped = false
  #host: MigrationHost | null = null
  #loading: Promise<void> | null = null
  #isLoaded = false
  #processed = 0
  #changed = 0

  constructor(options: MigrationsOptions) {
    this.#options = options
    this.#batches = new Batches(options)
    const { timers = REAL_TIMERS, calls } = options
    this.#worker = new MigrationWorker({
      ...options,
      timers,
      batches: this.#batches,
      hasCalls: () => calls.hasCalls,
      admits: () => this.#host!.admits(),
      load: (releaseId) => this.#host!.load(releaseId),
      next: () => this.#next(),
      onBatch: (end) => this.#onBatch(end),
      change: async (id, change, failure) => {
        await this.#change(id, ['running'], change, failure)
      },
    })
  }

  /** Reads the records, then continues what was running when the last server ended. */
  start(host: MigrationHost): void {
    this.#host = host
    this.#load().then(
      () => this.#worker.wake(),
      (error: unknown) => this.#options.log.error('migration.start_failed', { error }),
    )
  }

  /** Continues at once, after the Environment began to serve again. */
  wake(): void {
    if (this.#isLoaded) this.#worker.wake()
  }

  /** Starts no further batch. */
  stop(): void {
    this.#isStopped = true
    for (const { reject } of this.#waiters) reject(new Fault('UNAVAILABLE'))
    this.#waiters.clear()
    this.#worker.stop()
  }

  /** Resolves once no batch is in progress. */
  async whenIdle(): Promise<void> {
    await this.#loading?.catch(() => undefined)
    await this.#worker.whenIdle()
  }

  listen(listener: MigrationListener): void {
    this.#listeners.push(listener)
  }

  get statistics(): MigrationStatistics {
    const states = [...this.#records.values()].map(({ state }) => state)
    return {
      running: states.filter((state) => state === 'running').length,
      blocked: states.filter((state) => state === 'blocked').length,
      processed: this.#processed,
      changed: this.#changed,
    }
  }

  /** Degraded while batches cannot run or be stored, and unavailable after 10 s of that. */
  get health(): HealthStatus {
    const since = this.#worker.failingSinceMillis
    if (since === null) return 'healthy'
    const millis = this.#options.system.monotonicMillis() - since
    return millis >= UNAVAILABLE_MILLIS ? 'unavailable' : 'degraded'
  }

  /**
   * Returns the number of unfinished migrations that run the code of a Release; null before the
   * records are read.
   */
  unfinishedOf(releaseId: ReleaseId): number | null {
    if (!this.#isLoaded) return null
    const stored = [...this.#records.values()].filter(
      (record) => record.releaseId === releaseId && isUnfinished(record),
    )
    return stored.length + (this.#starting.get(releaseId) ?? 0)
  }

  /** Returns the record of a migration, in whichever Release it runs; null if it never ran. */
  async find(
    migration: Pick<MigrationManifest, 'name' | 'digest'>,
  ): Promise<MigrationRecord | null> {
    await this.#load()
    return this.#find(migration)
  }

  /**
   * Returns whether a migration of this name is complete: the one with the digest, or for null any
   * one.
   */
  async isComplete(name: string, digest: string | null): Promise<boolean> {
    await this.#load()
    return [...this.#records.values()].some(
      (record) =>
        record.name === name &&
        record.state === 'complete' &&
        (digest === null || record.digest === digest),
    )
  }

  /**
   * Starts, pauses, continues or cancels a migration. Resolves with its record; `isAllowed` is
   * false if its state does not allow the action. Running a canceled one begins anew. Rejects
   * with RELEASE_RETIRED, and as `SystemDocuments.change` does.
   */
  async act(
    action: RunAction,
    release: Pick<Release, 'releaseId'>,
    migration: MigrationManifest,
  ): Promise<{ readonly record: MigrationRecord | null; readonly isAllowed: boolean }> {
    await this.#load()
    const { digest } = migration
    while (this.#starts.has(digest)) await this.#starts.get(digest)!.catch(() => undefined)
    // Nothing may be awaited between here and the start of a first run.
    const record = this.#find(migration)
    if (record === null) {
      if (action !== 'run') return { record, isAllowed: false }
      const start = this.#start(release, migration).finally(() => this.#starts.delete(digest))
      this.#starts.set(digest, start)
      return { record: await start, isAllowed: true }
    }
    const isElsewhere = record.releaseId !== release.releaseId && isUnfinished(record)
    if (action === 'run' && isElsewhere) return { record, isAllowed: false }
    const { from, done } = TRANSITIONS[action]
    const changed = await this.#change(record.id, from, this.#changeOf(action, release, migration))
    if (action === 'run' || action === 'resume') this.#worker.wake()
    const isAllowed = changed.hasChanged || done.includes(changed.record.state)
    return { record: changed.record, isAllowed }
  }

  /**
   * Resolves once a migration that was started no longer runs. Rejects with UNAVAILABLE when the
   * engine stops.
   */
  async whenStopped(
    migration: Pick<MigrationManifest, 'name' | 'digest'>,
  ): Promise<StoppedMigration> {
    await this.#load()
    const record = this.#find(migration)
    assert(record !== null, `the migration ${migration.name} was started`)
    if (record.state !== 'running') return this.#stopped(record)
    if (this.#isStopped) throw new Fault('UNAVAILABLE')
    return new Promise((resolve, reject) => {
      this.#waiters.add({ id: record.id, resolve, reject })
    })
  }

  /** Cancels the unfinished migrations of this name that have another digest. */
  async cancelOthers({ name, digest }: Pick<MigrationManifest, 'name' | 'digest'>): Promise<void> {
    await this.#load()
    for (const record of this.#records.values()) {
      if (record.name !== name || record.digest === digest || !isUnfinished(record)) continue
      const finishedAtMicros = this.#options.system.nowMicros()
      const change = { state: 'canceled', finishedAtMicros } as const
      await this.#change(record.id, TRANSITIONS.cancel.from, change)
    }
  }

  /** Returns the first documents before and after, and stores nothing. Rejects as a batch does. */
  dryRun(release: Release, migration: MigrationManifest): Promise<readonly DocumentPreview[]> {
    return this.#batches.dryRun({ release, migration, documentsMax: DRY_RUN_DOCUMENTS })
  }

  #changeOf(
    action: RunAction,
    { releaseId }: Pick<Release, 'releaseId'>,
    { name, digest, table }: MigrationManifest,
  ): RecordChange {
    const { system } = this.#options
    switch (action) {
      case 'run': {
        const startedAtMicros = system.nowMicros()
        const started = startedRecord({ name, digest, table, releaseId, startedAtMicros })
        const { name: _, digest: __, table: ___, version: ____, ...change } = started
        return change
      }
      case 'pause':
        return { state: 'paused' }
      case 'resume':
        return { state: 'running', lastErrorCode: null, lastDocumentId: null }
      case 'cancel':
        return { state: 'canceled', finishedAtMicros: system.nowMicros() }
    }
  }

  async #start(
    { releaseId }: Pick<Release, 'releaseId'>,
    { name, digest, table }: MigrationManifest,
  ): Promise<MigrationRecord> {
    if (this.#host?.isRetired?.(releaseId)) throw new Fault('RELEASE_RETIRED')
    this.#starting.set(releaseId, (this.#starting.get(releaseId) ?? 0) + 1)
    try {
      const startedAtMicros = this.#options.system.nowMicros()
      const started = startedRecord({ name, digest, table, releaseId, startedAtMicros })
      const { documents } = this.#options
      const record = await documents.change((transaction) => insertRecord(transaction, started))
      this.#note(record, null)
      this.#worker.wake()
      return record
    } finally {
      const left = this.#starting.get(releaseId)! - 1
      if (left === 0) this.#starting.delete(releaseId)
      else this.#starting.set(releaseId, left)
    }
  }

  /** Changes a record that is in one of the states; it is left alone in any other. */
  async #change(
    id: string,
    from: readonly State[],
    change: RecordChange,
    failure: string | null = null,
  ): Promise<{ readonly record: MigrationRecord; readonly hasChanged: boolean }> {
    const changed = await this.#options.documents.change(async (transaction) => {
      const record = await readRecord(transaction, id)
      if (!from.includes(record.state)) return { record, hasChanged: false }
      return { record: await changeRecord(transaction, record, change), hasChanged: true }
    })
    this.#note(changed.record, failure)
    return changed
  }

  #load(): Promise<void> {
    this.#loading ??= this.#read().catch((error: unknown) => {
      this.#loading = null
      throw error
    })
    return this.#loading
  }

  async #read(): Promise<void> {
    const records = await this.#options.documents.read(readAllRecords)
    for (const record of records) this.#records.set(record.id, record)
    this.#isLoaded = true
  }

  #find({ name, digest }: Pick<MigrationManifest, 'name' | 'digest'>): MigrationRecord | null {
    for (const record of this.#records.values()) {
      if (record.name === name && record.digest === digest) return record
    }
    return null
  }

  #next(): MigrationRecord | null {
    let first: MigrationRecord | null = null
    for (const record of this.#records.values()) {
      if (record.state !== 'running') continue
      if (first === null || record.startedAtMicros < first.startedAtMicros) first = record
    }
    return first
  }

  #onBatch({ record, processed, changed, failure }: BatchEnd): void {
    this.#processed += processed
    this.#changed += changed
    this.#note(record, failure)
  }

  /** Keeps the newest version of a record, and reports where its state changed. */
  #note(record: MigrationRecord, failure: string | null): void {
    const known = this.#records.get(record.id)
    if (known !== undefined && known.version >= record.version) return
    this.#records.set(record.id, record)
    if (failure !== null) this.#failures.set(record.id, failure)
    const isNew = known === undefined || known.startedAtMicros !== record.startedAtMicros
    if (!isNew && known.state === record.state) return
    this.#log(record, failure)
    for (const listener of this.#listeners) listener(record, failure)
    if (record.state === 'running') return
    for (const waiter of this.#waiters) {
      if (waiter.id !== record.id) continue
      this.#waiters.delete(waiter)
      waiter.resolve(this.#stopped(record))
    }
  }

  #stopped(record: MigrationRecord): StoppedMigration {
    const failure = record.state === 'blocked' ? (this.#failures.get(record.id) ?? null) : null
    return { record, failure }
  }

  #log(record: MigrationRecord, failure: string | null): void {
    const { log } = this.#options
    const { name, releaseId, table, state, processed, changed } = record
    const fields = { migration: name, releaseId, table, state, processed, changed }
    const message = `The migration ${name} is ${state}.`
    if (state !== 'blocked') log.info(`migration.${state}`, { message, ...fields })
    else {
      const { lastErrorCode, lastDocumentId: documentId } = record
      const errorCode = lastErrorCode ?? undefined
      const error = failure ?? undefined
      const detail = { errorCode, documentId, detail: error }
      log.warn('migration.blocked', { message, ...fields, ...detail })
    }
  }
}
