import { join } from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { changingTarget } from '../../../testing/backups/changing-target.ts'
import { type FailingTarget, failingTarget } from '../../../testing/backups/failing-target.ts'
import {
  type FollowedServerBench,
  followedServer,
  type StoreKind,
  write,
} from '../../../testing/backups/followed-servers.ts'
import { rebuildState } from '../../../testing/backups/rebuilt-state.ts'
import { operationRecord, pruneAll } from '../../../testing/documents/store-fixtures.ts'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { findHistory } from '../../storage/control/environment.ts'
import { sha256Hex } from '../../system/digests.ts'
import { TestSystem } from '../../system/system.ts'
import type { HistoryId } from '../../value/ids.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import { Opener, recipientOf } from '../format/age-files.ts'
import { readSegment, verifyBackup } from '../format/backup-reader.ts'
import { blobPath, directoryOf, listBases, selectBackup } from '../format/chain.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { ContinuousBackup } from './continuous-backup.ts'
import type { ContinuousBackupOptions } from './continuous-options.ts'

const HISTORY = 'hst_00000000000000000000000001' as HistoryId
const ADDRESS = { environmentId: ENVIRONMENT_ID, historyId: HISTORY }
const FILE = Buffer.from('bytes of a stored file')
const DAY_MILLIS = 86_400_000

let system: TestSystem
let bench: FollowedServerBench
let target: FailingTarget
let secret: string
let backup: ContinuousBackup

async function begin(kind: StoreKind): Promise<void> {
  system = new TestSystem()
  bench = await followedServer(kind, system)
  target = failingTarget(new DirectoryTarget(join(bench.directory, 'target')))
  await Bun.write(join(bench.directory, 'target/.keep'), '')
  secret = await generateX25519Identity()
  backup = await newBackup()
}

async function newBackup(options: Partial<ContinuousBackupOptions> = {}) {
  return new ContinuousBackup({
    server: bench.server,
    target,
    recipients: [await recipientOf(secret)],
    historyId: HISTORY,
    baseIntervalMillis: DAY_MILLIS,
    retention: { days: 30, bases: 7 },
    // Only the test begins an increment.
    flushMillis: 2 ** 30,
    ...options,
  })
}

afterEach(async () => {
  await backup.stop()
  await bench.close()
})

const source = () => ({ target, opener: new Opener([secret]) })
const rebuilt = (sequence?: number) => rebuildState(source(), ADDRESS, bench.keys, sequence)

/** Starts the backup, and waits for its first base. */
async function started(): Promise<void> {
  backup.start()
  await backup.flush()
  await backup.whenBaseEnds()
}

const setValue = (name: string, value: string) =>
  bench.root.control.transaction((tx) =>
    tx.run(
      `insert or replace into configuration (name, kind, value, revision, created_at, updated_at)
       values (?1, 'variable', ?2, 1, 5, 6)`,
      name,
      value,
    ),
  )

const addOperator = (id: string) =>
  bench.identity.rows(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ($1, 'x', 1)`,
    [id],
  )

const textOf = (documents: ReadonlyMap<string, RecordOf<'document'>>, number: number) =>
  documents.get(write('notes', number, null).id)?.text

describe.each(['SQLite', 'PostgreSQL'] as const)('a continuous backup of %s', (kind) => {
  beforeEach(() => begin(kind))

  test('the state of each sequence is restored, with the rows of its increment', async () => {
    await bench.commit([write('notes', 1, '{"a":0}')])
    await started()
    await bench.commit([write('notes', 1, '{"a":1}'), write('notes', 2, '{"a":1}')])
    await bench.commit([write('notes', 2, null)], (sequence) =>
      operationRecord(1, { commitSequence: sequence }),
    )
    await bench.commit([], () => operationRecord(2, { commitSequence: null }))
    setValue('A', 'x')
    await addOperator('opr_1')
    await backup.flush()
    const state = await rebuilt()
    expect(state.sequence).toBe(3)
    expect([...state.documents.values()].map(({ text }) => text)).toEqual(['{"a":1}'])
    expect([...state.operations.values()].map(({ commitSequence }) => commitSequence)).toEqual([
      3,
      null,
    ])
    expect(state.control).toEqual(bench.controlRows())
    expect(state.identity).toEqual(await bench.identityRows())
    expect(textOf((await rebuilt(2)).documents, 2)).toBe('{"a":1}')
    expect(textOf((await rebuilt(1)).documents, 1)).toBe('{"a":0}')
    expect(backup.state()).toMatchObject({
      newestSequence: 3,
      behindMillis: 0,
      lastBase: { toSequence: 1 },
      failure: null,
      isReachable: true,
    })
  })

  test('a server that starts again catches up with what was committed without it', {
    tags: ['slow'],
  }, async () => {
    await bench.commit([write('notes', 1, '{"a":0}'), write('notes', 2, '{}')])
    await started()
    await bench.commit([write('notes', 3, '{}')])
    await backup.flush()
    await backup.stop()
    await bench.commit([write('notes', 1, '{"a":1}'), write('notes', 4, '{}')])
    await bench.commit([write('notes', 1, '{"a":2}'), write('notes', 2, null)], (sequence) =>
      operationRecord(1, { commitSequence: sequence }),
    )
    setValue('A', 'x')
    await addOperator('opr_1')
    await bench.restart()
    backup = await newBackup()
    await started()
    expect(backup.state().lastBase?.toSequence).toBe(1)
    await bench.commit([write('notes', 5, '{}')])
    await backup.flush()
    const state = await rebuilt()
    expect(state.sequence).toBe(5)
    const numbers = [1, 2, 3, 4, 5].map((number) => textOf(state.documents, number))
    expect(numbers).toEqual(['{"a":2}', undefined, '{}', '{}', '{}'])
    expect(state.operations.size).toBe(1)
    expect(state.control).toEqual(bench.controlRows())
    expect(state.identity).toEqual(await bench.identityRows())
    await expect(rebuilt(3)).rejects.toThrow('inside a catch-up')
    expect((await rebuilt(2)).sequence).toBe(2)
  })

  test('an operation that wrote nothing is caught up, whatever its time', {
    tags: ['slow'],
  }, async () => {
    await bench.commit([write('notes', 1, '{}')], (sequence) =>
      operationRecord(5, { commitSequence: sequence }),
    )
    await bench.commit([], () => operationRecord(4))
    await started()
    await bench.commit([], () => operationRecord(3))
    await backup.flush()
    await backup.stop()
    system.advance(DAY_MILLIS / 2)
    await bench.commit([], () => operationRecord(2))
    await bench.commit([write('notes', 2, '{}')])
    await bench.commit([], () => operationRecord(1))
    await bench.restart()
    backup = await newBackup()
    await started()
    expect(backup.state().lastBase?.toSequence).toBe(1)
    const state = await rebuilt()
    expect(state.sequence).toBe(2)
    const ids = [1, 2, 3, 4, 5].map((number) => operationRecord(number).operationId)
    expect([...state.operations.keys()].sort()).toEqual(ids)
  })

  test('a base follows where retention has removed the tombstone of a deletion', {
    tags: ['slow'],
  }, async () => {
    await bench.commit([write('notes', 1, '{}'), write('notes', 2, '{}')])
    await started()
    await backup.stop()
    system.advance(10_000)
    await bench.commit([write('notes', 1, null)])
    system.advance(10_000)
    await bench.commit([write('notes', 3, '{}')])
    await pruneAll(bench.store, {})
    await bench.restart()
    backup = await newBackup()
    await started()
    expect(backup.state()).toMatchObject({ baseReason: 'gap', newestSequence: 3, failure: null })
    expect([...(await rebuilt()).documents.keys()]).toEqual(
      [2, 3].map((number) => write('notes', number, null).id),
    )
  })

  test('a catch-up follows the files that its documents name and the rows of control', {
    tags: ['slow'],
  }, async () => {
    await started()
    await backup.stop()
    await bench.commit([write('fil', 1, await bench.stageFile(FILE))])
    await bench.commit([write('notes', 1, '{"a":1}')])
    setValue('A', 'while nothing was followed')
    await bench.restart()
    backup = await newBackup()
    backup.start()
    await backup.flush()
    const { segments } = await selectBackup(target, ADDRESS)
    const catchup = segments.findIndex((segment) => segment.kind === 'catchup')
    expect(segments[catchup]).toMatchObject({ toSequence: 2, runFiles: 2 })
    const before = segments[catchup - 1]!
    expect([before.kind, before.toSequence]).toEqual(['increment', 0])
    const records = await Array.fromAsync(readSegment(source(), before))
    const kinds = new Set(records.map(({ record }) => record.t))
    expect([kinds.has('blob'), kinds.has('control')]).toEqual([true, true])
  })

  test('files are named by an increment that follows their bytes', { tags: ['slow'] }, async () => {
    await started()
    await bench.commit([write('fil', 1, await bench.stageFile(FILE))])
    await backup.flush()
    expect([...(await rebuilt()).blobs.keys()]).toEqual([sha256Hex(FILE)])
    const verified = await verifyBackup(source(), await selectBackup(target, ADDRESS))
    expect(verified.blobBytes).toBe(FILE.length)
    expect(bench.heldFiles).toBe(0)
  })
})

describe('a target that fails', () => {
  beforeEach(() => begin('SQLite'))

  test('commits wait for it, and are written when it answers', { tags: ['slow'] }, async () => {
    await started()
    target.isFailing = true
    await bench.commit([write('notes', 1, '{"a":1}')])
    setValue('A', 'x')
    await expect(backup.flush()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(backup.state()).toMatchObject({
      newestSequence: 0,
      failure: 'UNAVAILABLE',
      isReachable: false,
    })
    expect(backup.state().bufferedBytes).toBeGreaterThan(0)
    target.isFailing = false
    await backup.flush()
    expect(backup.state()).toMatchObject({
      newestSequence: 1,
      failure: null,
      isReachable: true,
      bufferedBytes: 0,
    })
    const state = await rebuilt()
    expect(textOf(state.documents, 1)).toBe('{"a":1}')
    expect(state.control).toEqual(bench.controlRows())
  })

  test('no increment has a document whose file the target does not take', {
    tags: ['slow'],
  }, async () => {
    await started()
    target.isFailing = true
    target.failingNames = '/blobs/'
    await bench.commit([write('fil', 1, await bench.stageFile(FILE))])
    await expect(backup.flush()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(backup.state()).toMatchObject({ newestSequence: 0, filesSequence: 0 })
    target.isFailing = false
    await backup.flush()
    expect(backup.state()).toMatchObject({ newestSequence: 1, filesSequence: 1 })
    expect([...(await rebuilt()).blobs.keys()]).toEqual([sha256Hex(FILE)])
  })

  test('a new base follows where more commits wait than the memory for them holds', {
    tags: ['slow'],
  }, async () => {
    backup = await newBackup({ bufferBytesMax: 4_096 })
    await started()
    target.isFailing = true
    for (let number = 1; number <= 10; number++) {
      await bench.commit([write('notes', number, '{"a":1}')])
    }
    system.advance(60_000)
    expect(backup.state()).toMatchObject({ bufferedBytes: 0, behindMillis: 60_000 })
    await backup.flush()
    await backup.whenBaseEnds()
    expect(backup.state()).toMatchObject({ failure: 'UNAVAILABLE', isReachable: false })
    target.isFailing = false
    system.advance(60_000)
    await backup.flush()
    await backup.whenBaseEnds()
    expect(backup.state()).toMatchObject({ newestSequence: 10, baseReason: 'gap', failure: null })
    await bench.commit([write('notes', 11, '{}')])
    await backup.flush()
    expect((await rebuilt()).documents.size).toBe(11)
    expect((await rebuilt(9)).sequence).toBe(0)
  })
})

describe('the segments that are kept', () => {
  beforeEach(() => begin('SQLite'))

  test('each moment of the retention and its files stay, and older ones are removed', {
    tags: ['slow'],
  }, async () => {
    backup = await newBackup({ retention: { days: 2, bases: 1 } })
    await started()
    await bench.commit([write('fil', 1, await bench.stageFile(FILE))])
    await bench.commit([write('fil', 2, await bench.stageFile(Buffer.from('kept')))])
    await backup.flush()
    const { blobs } = await rebuilt()
    await bench.commit([write('fil', 1, null)])
    const snapshots = [0]
    for (let day = 1; day <= 5; day++) {
      await bench.commit([write('notes', day, '{}')])
      system.advance(DAY_MILLIS)
      await backup.flush()
      await backup.whenBaseEnds()
      snapshots.push(bench.store.latestSequence)
    }
    expect(backup.state().failure).toBeNull()
    const kept = []
    for await (const { toSequence } of listBases(target, ADDRESS)) kept.push(toSequence)
    // The base of two days ago has the moments from then on.
    expect(kept).toEqual(snapshots.slice(-3).reverse())
    expect((await rebuilt(snapshots.at(-3)!)).documents.size).toBe(4)
    await expect(rebuilt(snapshots[1])).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
    const stored = [...blobs].map(async ([sha256, { name }]) => [
      sha256,
      (await target.sizeOf(blobPath(ADDRESS, name))) !== null,
    ])
    expect(Object.fromEntries(await Promise.all(stored))).toEqual({
      [sha256Hex(FILE)]: false,
      [sha256Hex('kept')]: true,
    })
    const { segments } = await selectBackup(target, ADDRESS)
    const names = await target.names(`${directoryOf(ADDRESS)}/000000000`)
    expect(names).toContain(`${String(segments[0]!.number).padStart(12, '0')}.json`)
    expect(names).not.toContain('000000000001.age')
  })

  test.each(['another chain', 'no chain'] as const)(
    'a file system that is mounted over the target and has %s is continued without a restart',
    { tags: ['slow'] },
    async (found) => {
      const [below, mounted] = ['target', 'mounted'].map(
        (name) => new DirectoryTarget(join(bench.directory, name)),
      ) as [DirectoryTarget, DirectoryTarget]
      await Bun.write(join(mounted.location, '.keep'), '')
      const place = changingTarget(mounted, [2, 1])
      target = failingTarget(place.target)
      await bench.commit([write('notes', 1, '{"a":0}')])
      if (found === 'another chain') {
        backup = await newBackup()
        await started()
        await backup.stop()
      }
      // The server starts while the file system is not mounted.
      place.use(below, [1])
      backup = await newBackup()
      await started()
      await bench.commit([write('notes', 2, '{"a":1}')])
      setValue('A', 'x')
      await backup.flush()
      place.use(mounted, [2, 1])
      await bench.commit([write('notes', 3, '{"a":2}')])
      await expect(backup.flush()).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
      expect(backup.state().failure).toBe('BACKUP_CORRUPT')
      await backup.flush()
      await backup.whenBaseEnds()
      await backup.flush()
      expect(backup.state()).toMatchObject({ failure: null, newestSequence: 3, behindMillis: 0 })
      const state = await rebuilt()
      expect([...state.documents.values()].map(({ text }) => text).sort()).toEqual([
        '{"a":0}',
        '{"a":1}',
        '{"a":2}',
      ])
      expect(state.control).toEqual(bench.controlRows())
      const bases = await Array.fromAsync(listBases(mounted, ADDRESS))
      expect(bases).toHaveLength(1)
    },
  )

  test('a file system that is unmounted is reported, and not replaced by another', {
    tags: ['slow'],
  }, async () => {
    const mounted = new DirectoryTarget(join(bench.directory, 'target'))
    const below = new DirectoryTarget(join(bench.directory, 'below'))
    await Bun.write(join(below.location, '.keep'), '')
    const place = changingTarget(mounted, [2, 1])
    target = failingTarget(place.target)
    backup = await newBackup()
    await started()
    place.use(below, [1])
    await bench.commit([write('notes', 1, '{"a":0}')])
    for (let i = 0; i < 3; i++) {
      await expect(backup.flush()).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
    }
    expect(await below.names('')).toEqual(['.keep'])
    place.use(mounted, [2, 1])
    await backup.flush()
    expect(backup.state()).toMatchObject({ failure: null, newestSequence: 1 })
  })

  test('documents that lack commits of their backup begin a new history', {
    tags: ['slow'],
  }, async () => {
    await started()
    await bench.commit([write('notes', 1, '{"a":1}')])
    await bench.commit([write('notes', 2, '{"a":2}')])
    await backup.flush()
    await backup.stop()
    await bench.loseDocuments()
    await bench.commit([write('notes', 1, '{"a":"other"}')])
    const lost: unknown[] = []
    backup = await newBackup({ onHistory: (commits) => lost.push(commits) })
    backup.start()
    target.isFailing = true
    await expect(backup.flush()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    // By now the documents have as many commits as the history, and others.
    await bench.commit([write('notes', 3, '{"a":"other"}')])
    await bench.commit([write('notes', 4, '{"a":"other"}')])
    target.isFailing = false
    await backup.flush()
    await backup.whenBaseEnds()
    expect(lost).toEqual([{ historyId: HISTORY, backedUp: 2, documents: 1 }])
    expect(backup.state()).toMatchObject({ failure: null, newestSequence: 3 })
    const historyId = bench.root.control.read(findHistory)!
    expect(historyId).not.toBe(HISTORY)
    const old = await rebuilt()
    expect(old.sequence).toBe(2)
    expect([...old.documents.values()].map(({ text }) => text)).toEqual(['{"a":1}', '{"a":2}'])
    const state = await rebuildState(source(), { ...ADDRESS, historyId }, bench.keys)
    expect(state.sequence).toBe(3)
    expect(new Set([...state.documents.values()].map(({ text }) => text))).toEqual(
      new Set(['{"a":"other"}']),
    )
  })

  test('the last increment is written when the server stops', { tags: ['slow'] }, async () => {
    await started()
    await bench.commit([write('notes', 1, '{}')])
    await backup.stop()
    expect((await rebuilt()).sequence).toBe(1)
    await bench.commit([write('notes', 2, '{}')])
    expect(backup.state().bufferedBytes).toBe(0)
  })
})
