/**
 * Keeps the backup of a running server complete up to a second ago: increments, a base at the
 * start, every day and after a gap, and retention. Calls never wait for it.
 */
import { IdentityChanges } from '../../database/identity/changed-rows.ts'
import type { CommitFollower } from '../../engine/commits/committer.ts'
import { assert } from '../../errors/assert.ts'
import { Fault } from '../../errors/fault.ts'
import type { ControlChanges } from '../../storage/control/changes.ts'
import { beginHistory } from '../../storage/control/environment.ts'
import { SerialQueue } from '../../system/concurrency.ts'
import { BACKUP_BYTES_MAX } from '../../system/memory/memory-plan.ts'
import type { BackupId } from '../../value/ids.ts'
import type { Sidecar } from '../../wire/files/backups.ts'
import {
  type BaseFigures,
  type BaseResult,
  chainOptions,
  figuresOf,
  makeBase,
  storedBytes,
} from '../base/base-backup.ts'
import { BlobLocks, type StoredBytes } from '../base/stored-bytes.ts'
import { type HistoryAddress, readSidecar } from '../format/chain.ts'
import { ChainWriter } from '../format/chain-writer.ts'
import { BaseSchedule } from './base-schedule.ts'
import { BlobNames } from './blob-names.ts'
import { readCatchUp } from './catch-up.ts'
import { CommitBuffer } from './commit-buffer.ts'
import type {
  BackupState,
  BaseReason,
  ContinuousBackupOptions,
  LostCommits,
} from './continuous-options.ts'
import { ControlTooLong, IncrementWriter } from './increment-writer.ts'
import { PartFailures, serverStops } from './part-failures.ts'
import { PendingFiles } from './pending-files.ts'
import { lookAgain } from './place-changes.ts'
import { Progress } from './progress.ts'
import { removeOldSegments } from './retention.ts'
import { retryMillis } from './retries.ts'
import { WatchedTarget } from './watched-target.ts'

/** A commit can be restored a second after its reply. This leaves time to write the segment. */
const FLUSH_MILLIS = 750
/** A target that answers again is found within this time: commits wait for it. */
const FLUSH_RETRY_MILLIS_MAX = 5_000
/** Time for the last increment of a server that stops. */
const STOP_MILLIS = 2_000

export class ContinuousBackup {
  readonly #target: WatchedTarget
  #options: ContinuousBackupOptions
  #address: HistoryAddress
  readonly #buffer: CommitBuffer
  readonly #progress = new Progress()
  readonly #names = new BlobNames()
  readonly #locks = new BlobLocks()
  #bytes: StoredBytes
  /** Stops a base. */
  readonly #baseAbort = new AbortController()
  /** Stops a catch-up and retention. */
  readonly #abort = new AbortController()
  /** Stops what the last increment needs. */
  readonly #lastAbort = new AbortController()
  /** Increments, and the steps of a base that no increment may interrupt. */
  readonly #steps = new SerialQueue(1, 'BUSY')
  readonly #cycles = new SerialQueue(1, 'BUSY')
  readonly #failures = new PartFailures()
  readonly #baseSchedule: BaseSchedule
  #follower: CommitFollower | null = null
  #control: ControlChanges | null = null
  #files: PendingFiles | null = null
  #chain: ChainWriter | null = null
  #writer: IncrementWriter | null = null
  #lastBase: Sidecar | null = null
  #lastFigures: BaseFigures | null = null
  #newest: { readonly sequence: number; readonly atMicros: bigint } | null = null
  #runningBase: Promise<BaseResult> | null = null
  #baseReason: BaseReason | null = null
  /** The time at which the oldest commit that only the next base has became durable, or null. */
  #gapMillis: number | null = null
  #retries = 0
  #timer: ReturnType<typeof setTimeout> | null = null
  #isStopped = false
  #reported = ''

  constructor(options: ContinuousBackupOptions) {
    const { server, bufferBytesMax = BACKUP_BYTES_MAX } = options
    this.#target = new WatchedTarget(options.target)
    this.#options = { ...options, target: this.#target }
    this.#buffer = new CommitBuffer(bufferBytesMax, server.system)
    this.#address = chainOptions(this.#options).address
    this.#bytes = this.#newBytes()
    this.#baseSchedule = new BaseSchedule(server.system, options.baseIntervalMillis)
  }

  /** Follows commits from now on. Call it once, before the first call. */
  start(): void {
    const { server } = this.#options
    const { root, store, commits } = server
    this.#files = this.#newFiles()
    this.#control = root.control.trackChanges()
    this.#control.markAll()
    store.onSchemaChange(() => this.#writer?.noteSchemaChange())
    this.#follower = commits.follow((transactions) => this.#buffer.add(transactions))
    this.#schedule(0)
  }

  /**
   * Writes the last increment, and stops after `stopMillis` at the latest. The server commits
   * nothing from then on.
   */
  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.stopBase()
    this.#abort.abort(serverStops())
    const ended = this.#end()
    let timer: ReturnType<typeof setTimeout> | undefined
    const time = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#options.stopMillis ?? STOP_MILLIS)
    })
    await Promise.race([ended, time])
    clearTimeout(timer)
    this.#lastAbort.abort(serverStops())
    this.#follower?.stop()
    this.#control?.close()
  }

  /**
   * Stops the base in progress, and begins no other one. The base ends with UNAVAILABLE, and reads
   * nothing more of the server. It is not a failure of the backup: the next start makes another.
   */
  stopBase(): void {
    if (!this.#baseAbort.signal.aborted) this.#baseAbort.abort(serverStops())
  }

  state(): BackupState {
    const { system } = this.#options.server
    const oldest = this.#gapMillis ?? this.#buffer.oldestMillis
    return {
      newestSequence: this.#newest?.sequence ?? null,
      filesSequence: this.#filesSequence(),
      newestAtMicros: this.#newest?.atMicros ?? null,
      behindMillis: oldest === null ? 0 : Math.max(0, system.monotonicMillis() - oldest),
      lastBase: this.#lastBase,
      lastFigures: this.#lastFigures,
      failure: this.#failures.code,
      isReachable: this.#target.isReachable,
      baseReason: this.#baseReason,
      bytesWritten: this.#target.bytesWritten,
      bufferedBytes: this.#buffer.bytes,
    }
  }

  /**
   * Writes everything that was committed before the call, and begins a base if one is due. Rejects
   * with what prevents it. Commits that were lost to a gap need the base.
   */
  flush(): Promise<void> {
    return this.#cycles.runUnbounded(() => this.#cycle())
  }

  /** Makes a base. Rejects with BUSY while another one is made, and with what prevents it. */
  async makeBase(reason: BaseReason, backupId?: BackupId): Promise<BaseResult> {
    this.#baseAbort.signal.throwIfAborted()
    if (this.#runningBase !== null) throw new Fault('BUSY', { detail: 'a base is being made' })
    this.#baseReason = reason
    this.#runningBase = this.#makeBase(backupId).finally(() => {
      this.#runningBase = null
      this.#report()
    })
    return this.#runningBase
  }

  get isMakingBase(): boolean {
    return this.#runningBase !== null
  }

  /** Resolves when no base is being made. */
  async whenBaseEnds(): Promise<void> {
    await this.#runningBase?.catch(() => undefined)
  }

  #schedule(millis: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => void this.#tick(), millis)
    this.#timer.unref()
  }

  async #tick(): Promise<void> {
    const { system } = this.#options.server
    const startedMillis = system.monotonicMillis()
    try {
      await this.flush()
      this.#retries = 0
      const { flushMillis = FLUSH_MILLIS } = this.#options
      this.#schedule(Math.max(0, flushMillis - (system.monotonicMillis() - startedMillis)))
    } catch {
      // The state has the failure.
      this.#schedule(Math.min(FLUSH_RETRY_MILLIS_MAX, retryMillis(this.#retries++)))
    }
  }

  async #cycle(): Promise<void> {
    try {
      await this.#failures.attempt('increments', async () => {
        await this.#open()
        if (this.#buffer.hasLost) this.#progress.end()
        this.#startBaseIfDue()
        if (this.#progress.written !== null) await this.#writeCommits()
      })
      const writer = this.#writer
      if (writer === null || this.#progress.written === null) return
      this.#failures.note('files', writer.filesFailure)
      await this.#failures.attempt('identity', () =>
        this.#steps.runUnbounded(() => writer.writeIdentity()),
      )
    } finally {
      this.#report()
    }
  }

  async #writeCommits(): Promise<void> {
    const writer = this.#writer
    assert(writer !== null, 'the chain is open')
    await this.#steps.runUnbounded(async () => {
      const wasIdle = this.#buffer.size === 0
      const atMicros = this.#options.server.system.nowMicros()
      try {
        await writer.writeCommits()
      } catch (error) {
        if (!(error instanceof ControlTooLong)) throw error
        // A base reads the whole database.
        this.#control?.read()
        this.#control?.confirm()
        this.#buffer.lose()
        return
      }
      const sequence = this.#progress.written
      if (sequence === null || !this.#isJoined(sequence)) return
      this.#newest = { sequence, atMicros: wasIdle ? atMicros : (writer.newestMicros ?? atMicros) }
    })
  }

  #isJoined(sequence: number): boolean {
    const base = this.#lastBase
    return base !== null && sequence >= base.toSequence && this.#progress.joins(base.toSequence)
  }

  #filesSequence(): number | null {
    if (this.#newest === null) return null
    const files = Math.max(this.#progress.files, this.#lastBase?.toSequence ?? 0)
    return Math.min(this.#newest.sequence, files)
  }

  /** Opens the chain once, and catches up with what was committed before the start. */
  async #open(isUsed = this.#runningBase !== null): Promise<ChainWriter> {
    if (!isUsed && (await this.#chain?.isCovered())) this.#forgetChain()
    if (this.#chain !== null) return this.#chain
    let chain = await ChainWriter.open(chainOptions(this.#options))
    const { base, run } = chain.end
    this.#writer = null
    const read = (number: number) => readSidecar(this.#target, this.#address, number)
    const lastBase = base === null ? null : (await read(base)).sidecar
    const backedUp = Math.max(run?.to ?? 0, lastBase?.toSequence ?? 0)
    const documents = this.#follower?.from ?? 0
    if (backedUp > documents) {
      this.#beginHistory({ historyId: this.#address.historyId, backedUp, documents })
      chain = await ChainWriter.open(chainOptions(this.#options))
    } else if (lastBase !== null) {
      this.#lastBase = lastBase
      const newest = await read(chain.end.number)
      await this.#steps.runUnbounded(() => this.#catchUp(chain, lastBase, newest.sidecar))
    }
    this.#writer ??= this.#createWriter(chain)
    this.#chain = chain
    return chain
  }

  /** Begins as a server that starts: the mounted file system may have another chain or none. */
  #forgetChain(): void {
    this.#chain = null
    this.#lastBase = null
    this.#newest = null
    this.#failures.clear()
    this.#progress.end()
    this.#control?.markAll()
    void this.#files?.close()
    this.#files = this.#newFiles()
  }

  /**
   * The documents lack commits that the history has, such as after a power failure on a disk that
   * loses writes. Commits with the same sequences are others from now on, so they need a history of
   * their own.
   */
  #beginHistory(lost: LostCommits): void {
    const { root, system } = this.#options.server
    const historyId = system.ids.make('hst')
    root.control.transaction((tx) => beginHistory(tx, historyId))
    this.#options = { ...this.#options, historyId }
    this.#address = chainOptions(this.#options).address
    this.#bytes = this.#newBytes()
    this.#files = this.#newFiles()
    this.#options.onHistory?.(lost)
  }

  #newBytes(): StoredBytes {
    return storedBytes({
      ...this.#options,
      onUse: (name) => this.#names.use(name),
      locks: this.#locks,
      signal: this.#lastAbort.signal,
    })
  }

  #newFiles(): PendingFiles {
    const { blobs, holdFiles } = this.#options.server
    return new PendingFiles({ blobs, bytes: this.#bytes, names: this.#names, holdFiles })
  }

  #createWriter(chain: ChainWriter): IncrementWriter {
    const { server } = this.#options
    assert(this.#files !== null && this.#control !== null, 'the backup is started')
    const newest = this.#newest?.atMicros ?? server.system.nowMicros()
    const writer = new IncrementWriter({
      server,
      chain,
      bytes: this.#bytes,
      target: this.#target,
      names: this.#names,
      buffer: this.#buffer,
      files: this.#files,
      control: this.#control,
      identity: new IdentityChanges(server.identity, newest),
      progress: this.#progress,
    })
    writer.noteSchemaChange()
    this.#writer = writer
    return writer
  }

  async #catchUp(chain: ChainWriter, base: Sidecar, newest: Sidecar): Promise<void> {
    const { runFrom, runTo, runFiles } = newest
    const begun = Math.max(base.toSequence, runTo)
    // Without a base that they join up with, the increments are of no use.
    if (runFrom > base.toSequence || this.#buffer.hasLost) return
    const { server } = this.#options
    const hold = server.holdSnapshot()
    try {
      const { sequence } = hold
      const files = Math.max(base.toSequence, runFiles)
      const fromMicros = BigInt(newest.atMicros)
      const found = await readCatchUp({
        server,
        above: begun,
        files,
        snapshot: sequence,
        bytesMax: this.#options.catchUpBytesMax ?? BACKUP_BYTES_MAX,
        signal: this.#abort.signal,
      })
      if (found === null) return
      const from = runTo >= base.toSequence ? runFrom : base.toSequence
      for (const each of found.files) this.#files?.add(each.sequence, each.contents)
      this.#newest = { sequence: begun, atMicros: fromMicros }
      const storedUpTo = await this.#beginCatchUp(chain, { from, begun, files })
      if (storedUpTo === null) return
      if (!found.lines.isEmpty) {
        await chain.append({
          kind: 'catchup',
          backupId: null,
          first: null,
          fromSequence: begun,
          toSequence: sequence,
          run: { from, to: sequence, files: Math.min(sequence, storedUpTo) },
          atMicros: server.system.nowMicros(),
          ...found.lines.finish(),
        })
      }
      this.#buffer.dropUpTo(sequence)
      this.#progress.begin(from, sequence, Math.min(sequence, storedUpTo))
      this.#newest = { sequence, atMicros: fromMicros }
    } finally {
      hold.release()
    }
  }

  /**
   * Writes the bytes of the files and the rows of control before the documents that a catch-up has,
   * since the server may be killed again after it. Returns the sequence up to which the files are
   * stored; null if only a base has room for the rows.
   */
  async #beginCatchUp(
    chain: ChainWriter,
    { from, begun, files }: Readonly<Record<'from' | 'begun' | 'files', number>>,
  ): Promise<number | null> {
    const writer = this.#createWriter(chain)
    this.#progress.begin(from, begun, files)
    try {
      await writer.writeCommits([])
      return this.#files!.storedUpTo
    } catch (error) {
      this.#progress.end()
      if (!(error instanceof ControlTooLong)) throw error
      return null
    }
  }

  #startBaseIfDue(): void {
    if (this.#baseAbort.signal.aborted || this.#runningBase !== null) return
    const base = this.#lastBase
    const isJoined = base !== null && this.#progress.joins(base.toSequence)
    const reason = this.#baseSchedule.due(base, isJoined)
    if (reason === null) return
    this.makeBase(reason).catch(() => undefined)
  }

  async #makeBase(backupId: BackupId | undefined): Promise<BaseResult> {
    const before = this.#target.bytesWritten
    try {
      return await this.#failures.attempt(
        'base',
        async () => {
          const chain = () => this.#chain
          const result = await lookAgain(chain, () => this.#writeBase(backupId))
          this.#lastBase = result.base
          this.#lastFigures = figuresOf(result, this.#target.bytesWritten - before)
          this.#baseSchedule.noteSuccess()
          this.#noteBase(result.base)
          await removeOldSegments({
            ...this.#options,
            address: this.#address,
            nowMicros: this.#options.server.system.nowMicros(),
            names: this.#names,
            signal: this.#abort.signal,
          })
          return result
        },
        this.#baseAbort.signal,
      )
    } catch (error) {
      this.#baseSchedule.noteFailure()
      throw error
    }
  }

  async #writeBase(backupId: BackupId | undefined): Promise<BaseResult> {
    const chain = await this.#cycles.runUnbounded(() => this.#open(false))
    return makeBase({
      ...this.#options,
      backupId,
      chain,
      exclusive: (step) => this.#steps.runUnbounded(step),
      onSnapshot: (sequence) => this.#continueFrom(sequence),
      locks: this.#locks,
      signal: this.#baseAbort.signal,
    })
  }

  /** Begins the increments again at the snapshot of a base, if commits are missing before it. */
  #continueFrom(sequence: number): void {
    if (this.#progress.written !== null && !this.#buffer.hasLost) return
    // The commits that were lost cannot be restored before the base is complete.
    this.#gapMillis ??= this.#buffer.oldestMillis
    this.#buffer.restart()
    this.#files?.clear()
    this.#progress.begin(sequence)
  }

  #noteBase(base: Sidecar): void {
    const written = this.#progress.written
    if (this.#progress.joins(base.toSequence)) this.#gapMillis = null
    if (written !== null && this.#isJoined(written)) {
      this.#newest = {
        sequence: written,
        atMicros: this.#writer?.newestMicros ?? BigInt(base.atMicros),
      }
    } else if ((this.#newest?.sequence ?? -1) < base.toSequence) {
      this.#newest = { sequence: base.toSequence, atMicros: BigInt(base.atMicros) }
    }
  }

  #report(): void {
    const state = this.state()
    const reported = [state.failure, state.isReachable, state.lastBase?.number].join()
    if (reported === this.#reported || this.#isStopped) return
    this.#reported = reported
    this.#options.onChange?.(state)
  }

  async #end(): Promise<void> {
    await this.flush().catch(() => undefined)
    await this.whenBaseEnds()
    await this.#files?.close()
  }
}
