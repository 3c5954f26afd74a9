/**
 * Whole backups that operators ask for, in a directory of the Product root each. The control
 * database has a row for each of them, which says how it ended. Modules that encrypt are loaded
 * with the first backup.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault, isFault } from '../../errors/fault.ts'
import {
  deleteBackup,
  findBackup,
  insertBackup,
  listBackups,
  markBackupComplete,
  markBackupFailed,
  type StoredBackup,
} from '../../storage/control/backups.ts'
import { removeCopy } from '../../storage/control/copies.ts'
import { findHistory } from '../../storage/control/environment.ts'
import { BACKUPS_DIRECTORY, CONTROL_COPY_FILE } from '../../storage/root.ts'
import { readUpgrade } from '../../storage/upgrades.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { BackupId } from '../../value/ids.ts'
import { BACKUPS_MAX } from '../../wire/backups/backups.ts'
import type { Sidecar } from '../../wire/files/backups.ts'
import type { BackedUpServer, BaseFigures, BaseResult } from '../base/base-backup.ts'
import type { ContinuousBackup } from '../increments/continuous-backup.ts'
import type {
  BackupState,
  ContinuousBackupOptions,
  LostCommits,
} from '../increments/continuous-options.ts'
import type { Rehearsals } from '../rehearsal/rehearsals.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { makeDirectories } from '../targets/directory-files.ts'
import type { BackupFiles, BackupTarget } from '../targets/targets.ts'
import { guardedTarget } from './guarded-target.ts'

/** Continuous backups, and the target that they go to. */
export interface Continuous {
  readonly backup: ContinuousBackup
  readonly target: BackupTarget
  /** Null without an identity that opens the backups. */
  readonly rehearsals?: Rehearsals | null
}

export type ContinuousListeners = Required<Pick<ContinuousBackupOptions, 'onChange' | 'onHistory'>>

export interface BackupsHealth {
  readonly name: 'backups'
  readonly status: 'healthy' | 'degraded'
  /** The end of the last rehearsal of a restore; absent before the first one. */
  readonly lastRehearsal?: { readonly outcome: 'passed' | 'failed'; readonly atMicros: string }
}

export interface BackupsOptions {
  readonly server: BackedUpServer
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'counters' | 'addSource'>
  /** The recipients of the settings; null if each request names its own. */
  readonly recipients: readonly string[] | null
  /** Bytes that backups leave free on the disk of the Product root. */
  readonly freeFloorBytes: number
  /** Time that `close` gives to a backup that is being made. */
  readonly closeMillis?: number
  /** Null or absent without a target. The continuous backup calls the listeners. */
  readonly openContinuous?: ((listeners: ContinuousListeners) => Continuous) | null
}

export interface OrderedBackup {
  readonly backupId: BackupId
  readonly recipients: readonly string[]
}

/**
 * Each has all bytes of the files: a disk has room for few. That of the last upgrade is kept too.
 * @limit Backups: complete backups in the Product root; the oldest is removed for another one
 */
export const ROOT_BACKUPS_MAX = 2
const CLOSE_MILLIS = 2_000
/** Age of the oldest commit that cannot be restored, from which on the health is degraded. */
const BEHIND_MILLIS_MAX = 60_000

export class Backups {
  readonly location: 'root' | 'target'
  readonly recipients: readonly string[] | null
  readonly #options: BackupsOptions
  readonly #directory: string
  readonly #continuous: Continuous | null
  #wasFailing = false
  readonly #stopping = new AbortController()
  /** Number of readers of each archive. */
  readonly #readers = new Map<BackupId, number>()
  #running: Promise<void> | null = null

  /** Removes what an earlier process has left of backups that it did not complete. */
  constructor(options: BackupsOptions) {
    const { root, system } = options.server
    this.#options = options
    this.recipients = options.recipients
    this.#directory = join(root.path, BACKUPS_DIRECTORY)
    removeCopy(join(root.path, CONTROL_COPY_FILE))
    if (this.#stored().some(({ state }) => state === 'running')) {
      root.control.transaction((tx) => {
        markBackupFailed(tx, { backupId: null, code: 'UNAVAILABLE' }, system.nowMicros())
      })
    }
    this.#removeUnknown()
    const { openContinuous = null } = options
    const listeners: ContinuousListeners = {
      onChange: (state) => void this.#noteState(state),
      onHistory: (lost) => this.#noteHistory(lost),
    }
    this.#continuous = openContinuous?.(listeners) ?? null
    this.location = this.#continuous === null ? 'root' : 'target'
    this.#startContinuous()
  }

  get isBusy(): boolean {
    return this.#running !== null || (this.#continuous?.backup.isMakingBase ?? false)
  }

  /** Starts a backup that is recorded as running, and records its end. Never throws. */
  start(order: OrderedBackup): void {
    this.#running = this.#run(order).finally(() => {
      this.#running = null
    })
  }

  /** Resolves when the backup in progress, if any, has ended. */
  async whenIdle(): Promise<void> {
    await this.#running
  }

  /**
   * Yields the archive of a complete backup. Raises UNAVAILABLE, and BACKUP_CORRUPT for a file that
   * is missing.
   */
  async *content(backup: StoredBackup): AsyncGenerator<Uint8Array> {
    const { backupId, historyId } = backup
    const { environmentId } = this.#options.server.root.descriptor
    this.#readers.set(backupId, (this.#readers.get(backupId) ?? 0) + 1)
    try {
      const { archiveOf } = await import('./archive.ts')
      const address = { environmentId, historyId }
      yield* archiveOf(this.#placeOf(backup), { ...address, ...backup.result! })
    } finally {
      const left = this.#readers.get(backupId)! - 1
      if (left === 0) this.#readers.delete(backupId)
      else this.#readers.set(backupId, left)
    }
  }

  /** Returns no component without continuous backups. */
  health(): readonly BackupsHealth[] {
    if (this.#continuous === null) return []
    const { isReachable, failure, newestSequence, behindMillis } = this.#continuous.backup.state()
    const isWhole = isReachable && failure === null && newestSequence !== null
    const last = this.#continuous.rehearsals?.last ?? null
    const hasFailed = last !== null && last.failureCode !== null
    const isHealthy = isWhole && behindMillis <= BEHIND_MILLIS_MAX && !hasFailed
    const status = isHealthy ? 'healthy' : 'degraded'
    if (last === null) return [{ name: 'backups', status }]
    const outcome = hasFailed ? 'failed' : 'passed'
    const lastRehearsal = { outcome, atMicros: last.finishedAtMicros } as const
    return [{ name: 'backups', status, lastRehearsal }]
  }

  /** Writes the last increment. The server no longer commits. */
  async stop(): Promise<void> {
    await this.#continuous?.backup.stop()
  }

  /** Ends the backup in progress, which is not complete then. Waits for `closeMillis` at most. */
  async close(): Promise<void> {
    this.#continuous?.backup.stopBase()
    this.#stopping.abort(new Fault('UNAVAILABLE', { detail: 'the server stops' }))
    const { closeMillis = CLOSE_MILLIS } = this.#options
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, closeMillis)
    const { backup, rehearsals } = this.#continuous ?? {}
    const ended = Promise.all([this.whenIdle(), backup?.whenBaseEnds(), rehearsals?.stop()])
    await Promise.race([ended, late.promise])
    clearTimeout(timer)
  }

  async #run(order: OrderedBackup): Promise<void> {
    const { log, metrics } = this.#options
    const { backupId } = order
    const { system, root } = this.#options.server
    const begun = system.monotonicMillis()
    let bytes = 0
    try {
      await this.#removeOldest()
      const made = await this.#make(order, (count) => {
        bytes += count
        metrics.counters.backupBytes.add(count)
      })
      const { base, counts, damaged } = made
      const result = {
        firstSegment: base.first,
        lastSegment: base.number,
        sequence: base.toSequence,
        documents: counts.document ?? 0,
        bytes,
        damaged: damaged.length,
      }
      root.control.transaction((tx) => {
        markBackupComplete(tx, backupId, result, system.nowMicros())
      })
      metrics.counters.backupsCompleted.add()
      const millis = Math.round(system.monotonicMillis() - begun)
      const { sequence, documents } = result
      const record = { backupId, sequence, documents, bytes, damaged: damaged.length, millis }
      const message = `The backup ${backupId} is complete.`
      if (damaged.length === 0) log.info('backup.completed', { message, ...record })
      else
        log.warn('backup.completed', { message: `${message} It lacks damaged files.`, ...record })
    } catch (error) {
      if (this.#isClosing) {
        await this.#leave(backupId)
        return
      }
      metrics.counters.backupFailures.add()
      const errorCode = isFault(error) ? error.code : 'PRODUCT_UNAVAILABLE'
      const detail = isFault(error) ? error.detail : undefined
      const message = `The backup ${backupId} failed.`
      const cause = isFault(error) ? error.cause : error
      log.error('backup.failed', { message, backupId, errorCode, detail, error: cause })
      await this.#fail(backupId, errorCode)
    }
  }

  get #isClosing(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Records that the end of the server prevented a backup, unless the root is closed already. */
  async #leave(backupId: BackupId): Promise<void> {
    const message = `The server stops before the backup ${backupId} is complete.`
    this.#options.log.info('backup.stopped', { message, backupId })
    await this.#fail(backupId, 'UNAVAILABLE')
  }

  #startContinuous(): void {
    if (this.#continuous === null) return
    const { backup } = this.#continuous
    this.#options.metrics.addSource(() => {
      const { behindMillis, newestSequence, filesSequence, bytesWritten } = backup.state()
      return {
        backupBehindMicros: behindMillis * 1_000,
        backupSequence: newestSequence ?? 0,
        backupFilesSequence: filesSequence ?? 0,
        backupBytes: bytesWritten,
      }
    })
    backup.start()
  }

  /**
   * Logs each change between failing and not, records the bases that the server began, and begins a
   * rehearsal that waited for a base.
   */
  async #noteState({ failure, isReachable, lastBase, lastFigures }: BackupState): Promise<void> {
    const { log } = this.#options
    const isFailing = failure !== null || !isReachable
    if (isFailing !== this.#wasFailing) {
      this.#wasFailing = isFailing
      const errorCode = failure ?? 'UNAVAILABLE'
      const message = 'Continuous backups are delayed: the newest commits are in no backup.'
      if (isFailing) log.warn('backup.delayed', { message, errorCode })
      else log.info('backup.resumed', { message: 'Continuous backups are complete again.' })
    }
    if (lastBase === null) return
    void this.#continuous?.rehearsals?.check()
    try {
      await this.#recordBase(lastBase, lastFigures)
    } catch (error) {
      // The next base is recorded with all that are left.
      if (this.#isClosing) return
      log.warn('backup.unrecorded', { message: 'The list of backups may lack one.', error })
    }
  }

  #noteHistory({ historyId, backedUp, documents }: LostCommits): void {
    const message =
      `The backup has commits up to ${backedUp}, and the documents end at ${documents}: a new ` +
      `history of backups begins. Restore ${historyId} for the commits that are missing.`
    this.#options.log.warn('backup.history_begun', { message, historyId, backedUp, documents })
  }

  /** Records a base, and forgets those that retention has removed. */
  async #recordBase(base: Sidecar, figures: BaseFigures | null): Promise<void> {
    const { backupId, historyId, first, number, toSequence, atMicros } = base
    const { control } = this.#options.server.root
    const target = this.#continuous?.target
    if (backupId === null || target === undefined) return
    control.transaction((tx) => {
      if (findBackup(tx, backupId) !== null) return
      const at = BigInt(atMicros)
      const row = { backupId, historyId, createdAtMicros: at }
      insertBackup(tx, { ...row, reason: 'scheduled', location: 'target' })
      const known = figures ?? { documents: null, bytes: null, damaged: null }
      const segments = { firstSegment: first, lastSegment: number, sequence: toSequence }
      const finishedAt = this.#options.server.system.nowMicros()
      markBackupComplete(tx, backupId, { ...segments, ...known }, finishedAt)
    })
    const { segmentPath } = await import('../format/chain.ts')
    const { environmentId } = this.#options.server.root.descriptor
    for (const { backupId: each, historyId, location, result } of this.#stored()) {
      if (location !== 'target' || result === null) continue
      const path = segmentPath({ environmentId, historyId }, result.firstSegment)
      if ((await target.sizeOf(`${path}.json`)) !== null) continue
      control.transaction((tx) => deleteBackup(tx, each))
    }
  }

  async #make(order: OrderedBackup, onWritten: (bytes: number) => void): Promise<BaseResult> {
    if (this.#continuous !== null) {
      const { backup } = this.#continuous
      const before = backup.state().bytesWritten
      const made = await backup.makeBase('request', order.backupId)
      onWritten(backup.state().bytesWritten - before)
      return made
    }
    const { makeBase } = await import('../base/base-backup.ts')
    const { server, freeFloorBytes } = this.#options
    const { root } = server
    await makeDirectories(root.path, `${BACKUPS_DIRECTORY}/${order.backupId}`)
    const space = { directory: root.path, floorBytes: freeFloorBytes }
    return makeBase({
      ...order,
      server,
      target: guardedTarget(this.#targetOf(order.backupId), onWritten, space),
      historyId: root.control.read(findHistory)!,
      signal: this.#stopping.signal,
    })
  }

  async #fail(backupId: BackupId, code: string): Promise<void> {
    const { log, server } = this.#options
    try {
      await rm(join(this.#directory, backupId), { recursive: true, force: true })
      server.root.control.transaction((tx) => {
        markBackupFailed(tx, { backupId, code }, server.system.nowMicros())
      })
    } catch (error) {
      // The next start marks and removes it.
      if (this.#isClosing) return
      log.warn('backup.left', { message: `Files of the backup ${backupId} are left.`, error })
    }
  }

  /** Makes room for another backup. One that is being read stays, and that of the last upgrade. */
  async #removeOldest(): Promise<void> {
    const { root } = this.#options.server
    const kept = readUpgrade(root.path)?.backupId
    const complete = this.#stored().filter(
      ({ state, location, backupId }) =>
        state === 'complete' && location === 'root' && backupId !== kept,
    )
    for (const { backupId } of complete.slice(ROOT_BACKUPS_MAX - 1)) {
      if (this.#readers.has(backupId)) continue
      // A backup that is listed has all its files.
      root.control.transaction((tx) => deleteBackup(tx, backupId))
      await rm(join(this.#directory, backupId), { recursive: true, force: true })
    }
  }

  #removeUnknown(): void {
    if (!existsSync(this.#directory)) return
    const complete = new Set<string>(
      this.#stored().flatMap(({ state, backupId }) => (state === 'complete' ? [backupId] : [])),
    )
    const upgrade = readUpgrade(this.#options.server.root.path)
    if (upgrade !== null) complete.add(upgrade.backupId)
    for (const name of readdirSync(this.#directory)) {
      if (complete.has(name)) continue
      rmSync(join(this.#directory, name), { recursive: true, force: true })
    }
  }

  #stored(): StoredBackup[] {
    const { control } = this.#options.server.root
    return control.read((reader) => listBackups(reader, BACKUPS_MAX))
  }

  #placeOf({ backupId, location }: StoredBackup): BackupFiles {
    if (location === 'root') return this.#targetOf(backupId)
    if (this.#continuous !== null) return this.#continuous.target
    throw new Fault('UNAVAILABLE', { detail: 'the settings name no target of backups' })
  }

  #targetOf(backupId: BackupId): BackupTarget {
    return new DirectoryTarget(join(this.#directory, backupId))
  }
}
