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
  listBackups,
  markBackupComplete,
  markBackupFailed,
  type StoredBackup,
} from '../../storage/control/backups.ts'
import { removeCopy } from '../../storage/control/copies.ts'
import { findHistory } from '../../storage/control/environment.ts'
import { BACKUPS_DIRECTORY, CONTROL_COPY_FILE } from '../../storage/root.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { BackupId } from '../../value/ids.ts'
import { BACKUPS_MAX } from '../../wire/backups/backups.ts'
import type { BackedUpServer, BaseResult } from '../base/base-backup.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { makeDirectories } from '../targets/directory-files.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { guardedTarget } from './guarded-target.ts'

export interface BackupsOptions {
  readonly server: BackedUpServer
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'counters'>
  /** The recipients of the settings; null if each request names its own. */
  readonly recipients: readonly string[] | null
  /** Bytes that backups leave free on the disk of the Product root. */
  readonly freeFloorBytes: number
}

export interface OrderedBackup {
  readonly backupId: BackupId
  readonly recipients: readonly string[]
}

/**
 * Each has all bytes of the files: a disk has room for few.
 * @limit Backups: complete backups in the Product root; the oldest is removed for another one
 */
export const ROOT_BACKUPS_MAX = 2
/** Time that the end of the server gives to a backup that is being made. */
const CLOSE_MILLIS = 2_000

export class Backups {
  readonly location = 'root' as const
  readonly recipients: readonly string[] | null
  readonly #options: BackupsOptions
  readonly #directory: string
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
  }

  get isBusy(): boolean {
    return this.#running !== null
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
      yield* archiveOf(this.#targetOf(backupId), { ...address, ...backup.result! })
    } finally {
      const left = this.#readers.get(backupId)! - 1
      if (left === 0) this.#readers.delete(backupId)
      else this.#readers.set(backupId, left)
    }
  }

  /** Ends the backup in progress, which fails. Waits for 2 s at most. */
  async close(): Promise<void> {
    this.#stopping.abort(new Fault('UNAVAILABLE', { detail: 'the server stops' }))
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, CLOSE_MILLIS)
    await Promise.race([this.whenIdle(), late.promise])
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
      metrics.counters.backupFailures.add()
      const errorCode = isFault(error) ? error.code : 'PRODUCT_UNAVAILABLE'
      const detail = isFault(error) ? error.detail : undefined
      const message = `The backup ${backupId} failed.`
      const cause = isFault(error) ? error.cause : error
      log.error('backup.failed', { message, backupId, errorCode, detail, error: cause })
      await this.#fail(backupId, errorCode)
    }
  }

  async #make(order: OrderedBackup, onWritten: (bytes: number) => void): Promise<BaseResult> {
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
      log.warn('backup.left', { message: `Files of the backup ${backupId} are left.`, error })
    }
  }

  /** Makes room for another backup. One that is being read stays. */
  async #removeOldest(): Promise<void> {
    const { root } = this.#options.server
    const complete = this.#stored().filter(
      ({ state, location }) => state === 'complete' && location === 'root',
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
    for (const name of readdirSync(this.#directory)) {
      if (complete.has(name)) continue
      rmSync(join(this.#directory, name), { recursive: true, force: true })
    }
  }

  #stored(): StoredBackup[] {
    const { control } = this.#options.server.root
    return control.read((reader) => listBackups(reader, findHistory(reader)!, BACKUPS_MAX))
  }

  #targetOf(backupId: BackupId): BackupTarget {
    return new DirectoryTarget(join(this.#directory, backupId))
  }
}
