/**
 * @module-tag slow
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type FollowedServerBench,
  followedServer,
  write,
} from '../../../testing/backups/followed-servers.ts'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { findBackup, insertBackup, listBackups } from '../../storage/control/backups.ts'
import { beginHistory, findHistory } from '../../storage/control/environment.ts'
import { realSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { BackupId } from '../../value/ids.ts'
import { formatUpgrade } from '../../wire/files/upgrades.ts'
import { makeIdentity, recipientOf } from '../format/age-files.ts'
import { listBases } from '../format/chain.ts'
import { ContinuousBackup } from '../increments/continuous-backup.ts'
import { Rehearsals, type RehearsalsOptions } from '../rehearsal/rehearsals.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { Backups } from './backups.ts'

const DAY_MILLIS = 86_400_000
/** Time that a stop gives to a backup: only a hang takes longer. */
const STOP_MILLIS = 60_000
/** Time that a stop gives to a backup that the test holds back until the stop has ended. */
const HELD_MILLIS = 10

/** Holds back one access, and tells when it is waited for. */
class Barrier {
  readonly #reached = Promise.withResolvers<void>()
  readonly #opened = Promise.withResolvers<void>()

  get reached(): Promise<void> {
    return this.#reached.promise
  }

  async pass(): Promise<void> {
    this.#reached.resolve()
    await this.#opened.promise
  }

  open(): void {
    this.#opened.resolve()
  }
}

describe.each(['SQLite', 'PostgreSQL'] as const)('backups of documents in %s', (kind) => {
  let bench: FollowedServerBench
  let log: MemoryLog
  let barrier: Barrier
  let isClosed: boolean
  let readsAfterClose: number
  let stopMillis: number

  beforeEach(async () => {
    bench = await followedServer(kind, realSystem())
    log = memoryLog()
    barrier = new Barrier()
    isClosed = false
    readsAfterClose = 0
    stopMillis = STOP_MILLIS
    await bench.commit([write('notes', 1, '{"a":1}'), write('notes', 2, '{"a":2}')])
  })
  afterEach(() => barrier.open())

  const historyId = () => bench.root.control.read(findHistory)!

  /** A server whose first read of documents waits for the barrier if `isHeld`. */
  function server(isHeld: boolean) {
    const { store } = bench
    const versions: typeof store.versions = async (scan) => {
      if (isHeld) await barrier.pass()
      if (isClosed) readsAfterClose += 1
      return store.versions(scan)
    }
    const held = {
      versions,
      operations: store.operations.bind(store),
      changedVersions: store.changedVersions.bind(store),
      newOperations: store.newOperations.bind(store),
      schema: store.schema.bind(store),
      onSchemaChange: store.onSchemaChange.bind(store),
    }
    return { ...bench.server, store: held }
  }

  /** A target whose second part of a base waits for the barrier if `isHeld`. */
  function target(isHeld: boolean): BackupTarget {
    const path = join(bench.directory, 'target')
    mkdirSync(path, { recursive: true })
    const directory = new DirectoryTarget(path)
    const { location } = directory
    return {
      location,
      names: (name) => directory.names(name),
      sizeOf: (name) => directory.sizeOf(name),
      read: (name) => directory.read(name),
      remove: (name) => directory.remove(name),
      removeDirectory: (name) => directory.removeDirectory(name),
      write: async (name, bytes) => {
        if (isHeld && name.endsWith('2.age')) await barrier.pass()
        return directory.write(name, bytes)
      },
    }
  }

  /** The server rehearses restores if it is given how. */
  async function open(
    held: 'documents' | 'target',
    place: 'root' | 'target',
    rehearse: RehearsalsOptions['rehearse'] | null = null,
  ) {
    const recipients = [await recipientOf(await makeIdentity())]
    const backedUp = server(held === 'documents')
    const to = target(held === 'target')
    let continuous: ContinuousBackup | null = null
    const metrics = new Metrics(realSystem())
    const rehearsalsOf = (backup: ContinuousBackup, rehearses: RehearsalsOptions['rehearse']) =>
      new Rehearsals({
        system: realSystem(),
        log: log.log,
        metrics,
        path: join(bench.directory, 'rehearsal.json'),
        backedUpHistory: () => backup.state().lastBase?.historyId ?? null,
        rehearse: rehearses,
        // The time to look at what is due does not come.
        checkMillis: 2 ** 30,
      })
    const backups = new Backups({
      server: backedUp,
      log: log.log,
      metrics,
      recipients,
      freeFloorBytes: 0,
      closeMillis: stopMillis,
      openContinuous:
        place === 'root'
          ? null
          : (listeners) => {
              continuous = new ContinuousBackup({
                server: backedUp,
                target: to,
                recipients,
                historyId: historyId(),
                baseIntervalMillis: DAY_MILLIS,
                retention: { days: 30, bases: 7 },
                flushMillis: 2 ** 30,
                stopMillis,
                ...listeners,
              })
              const rehearsals = rehearse === null ? null : rehearsalsOf(continuous, rehearse)
              return { backup: continuous, target: to, rehearsals }
            },
    })
    return { backups, recipients, to, continuous: continuous as ContinuousBackup | null }
  }

  /** Starts a backup as an operator does. */
  function order(backups: Backups, recipients: readonly string[]) {
    const backupId = realSystem().ids.make('bkp')
    bench.root.control.transaction((tx) => {
      const row = { backupId, historyId: historyId(), createdAtMicros: 1n }
      insertBackup(tx, { ...row, reason: 'requested', location: 'root' })
    })
    backups.start({ backupId, recipients })
    return backupId
  }

  /** Closes the parts in the order of a server, and lets what is held back continue. */
  async function stop(backups: Backups): Promise<void> {
    await backups.close()
    await backups.stop()
    await bench.closeStore()
    isClosed = true
  }

  const problems = () => log.records().filter(({ level }) => level === 'error' || level === 'warn')

  test.each([
    ['the documents', 'documents'],
    ['the target', 'target'],
  ] as const)(
    'a base that waits for %s when the server stops is no backup and no error',
    async (_, held) => {
      stopMillis = HELD_MILLIS
      const { backups, to, continuous } = await open(held, 'target')
      await barrier.reached
      await stop(backups)
      barrier.open()
      await continuous!.whenBaseEnds()
      expect(problems()).toEqual([])
      expect(readsAfterClose).toBe(held === 'documents' ? 1 : 0)
      const bases = await Array.fromAsync(
        listBases(to, { environmentId: ENVIRONMENT_ID, historyId: historyId() }),
      )
      expect(bases).toEqual([])
      await bench.close()
    },
  )

  test('a requested backup fails with the server that stops, without an error record', async () => {
    stopMillis = HELD_MILLIS
    const { backups, recipients } = await open('documents', 'root')
    const backupId = order(backups, recipients)
    await barrier.reached
    await stop(backups)
    barrier.open()
    await backups.whenIdle()
    expect(problems()).toEqual([])
    expect(log.records().map(({ event }) => event)).toEqual(['backup.stopped'])
    const row = bench.root.control.read((reader) => findBackup(reader, backupId))
    expect(row).toMatchObject({ state: 'failed', result: null })
    await bench.close()
  })

  test('a base that the server began by itself is listed with its figures', async () => {
    const { backups, continuous } = await open('target', 'target')
    await barrier.reached
    barrier.open()
    await continuous!.whenBaseEnds()
    const listed = () => bench.root.control.read((reader) => listBackups(reader, 10))
    await expect.poll(listed, { timeout: 60_000 }).toMatchObject([
      {
        reason: 'scheduled',
        location: 'target',
        result: { documents: 2, bytes: expect.any(Number), damaged: 0 },
      },
    ])
    expect(listed()[0]!.result!.bytes).toBeGreaterThan(1_000)
    await stop(backups)
    await bench.close()
  })

  test('requested backups do not push out the one before the last upgrade', async () => {
    const made: BackupId[] = []
    const make = async (backups: Backups, recipients: readonly string[]) => {
      made.push(order(backups, recipients))
      await backups.whenIdle()
    }
    const kept = () => {
      const names = readdirSync(join(bench.root.path, 'backups')).toSorted()
      const rows = bench.root.control.read((reader) => listBackups(reader, 10))
      expect(rows.map(({ backupId }) => backupId).toSorted()).toEqual(names)
      return names.map((name) => made.indexOf(name as BackupId))
    }
    barrier.open()
    const { backups, recipients } = await open('target', 'root')
    await make(backups, recipients)
    const upgrade = join(bench.root.path, 'upgrade.json')
    const versions = { identity: 1, control: 1, documents: 1, logs: 1 }
    const states = { found: versions, target: versions, sequence: 2, atMicros: '1' }
    const named = { backupId: made[0]!, historyId: historyId(), ...states }
    writeFileSync(upgrade, formatUpgrade(named), { mode: 0o600 })
    for (let i = 0; i < 3; i++) await make(backups, recipients)
    expect(kept()).toEqual([0, 2, 3])
    await backups.close()
    const again = await open('target', 'root')
    expect(kept()).toEqual([0, 2, 3])
    rmSync(upgrade)
    await make(again.backups, recipients)
    expect(kept()).toEqual([3, 4])
    await again.backups.close()
    await bench.close()
  })

  test('the first rehearsal begins once there is a whole backup', async () => {
    const begun = Promise.withResolvers<string>()
    const { backups } = await open('target', 'target', async (address) => {
      begun.resolve(address)
      return { sequence: 2, documents: 2, merkle: 'a'.repeat(64) }
    })
    await barrier.reached
    expect(backups.health()[0]).not.toHaveProperty('lastRehearsal')
    barrier.open()
    expect(await begun.promise).toBe(historyId())
    const last = () => backups.health()[0]!.lastRehearsal
    await expect.poll(last, { timeout: 60_000 }).toMatchObject({ outcome: 'passed' })
    await stop(backups)
    await bench.close()
  })

  test('a backup of an earlier history can be read after an accepted loss', async () => {
    const { backups, recipients } = await open('target', 'root')
    const backupId = order(backups, recipients)
    await backups.whenIdle()
    await backups.close()
    const next = realSystem().ids.make('hst')
    bench.root.control.transaction((tx) => beginHistory(tx, next))
    const again = (await open('target', 'root')).backups
    const backup = bench.root.control.read((reader) => findBackup(reader, backupId))!
    expect(backup).toMatchObject({ state: 'complete' })
    let bytes = 0
    for await (const piece of again.content(backup)) bytes += piece.length
    expect(bytes).toBeGreaterThan(512)
    await again.close()
    await bench.close()
  })
})
