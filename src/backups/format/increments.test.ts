import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Fault, isFault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import { realSystem } from '../../system/system.ts'
import type { EnvironmentId, HistoryId } from '../../value/ids.ts'
import type { BackupRecord, Sidecar } from '../../wire/files/backups.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { collect, Opener, recipientOf, Sealer } from './age-files.ts'
import { readIncrement, verifyBackup } from './backup-reader.ts'
import { BackupWriter } from './backup-writer.ts'
import {
  blobPath,
  type HistoryAddress,
  joinIncrements,
  listBases,
  segmentPath,
  selectBackup,
} from './chain.ts'
import { ChainWriter, type NewSegment } from './chain-writer.ts'
import { IncrementLines } from './increment-lines.ts'

const ADDRESS: HistoryAddress = {
  environmentId: 'env_00000000000000000000000001' as EnvironmentId,
  historyId: 'hst_00000000000000000000000001' as HistoryId,
}
const FILE = Buffer.from('the bytes of a file')
const NAME = sha256Hex('a name')
const BLOB: BackupRecord = { t: 'blob', sha256: sha256Hex(FILE), bytes: FILE.length, name: NAME }

let directory: string
let target: DirectoryTarget
let sealer: Sealer
let identity: string
let chain: ChainWriter

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'increments-'))
  target = new DirectoryTarget(directory)
  identity = await generateX25519Identity()
  sealer = new Sealer([await recipientOf(identity)])
  chain = await ChainWriter.open({ target, sealer, address: ADDRESS })
  await target.write(blobPath(ADDRESS, NAME), sealer.seal([FILE]))
})
afterEach(() => rmSync(directory, { recursive: true }))

const source = () => ({ target, opener: new Opener([identity]) })

const document = (sequence: number): BackupRecord => ({
  t: 'document',
  id: `notes_${String(sequence).padStart(26, '0')}`,
  createdAtMicros: '5',
  sequence,
  text: '{}',
})

const commit = (sequence: number): BackupRecord[] => [
  { t: 'commit', sequence, atMicros: '7' },
  document(sequence),
]

function backupWriter(sequence: number): BackupWriter {
  const backupId = realSystem().ids.make('bkp')
  return new BackupWriter({ chain, backupId, sequence, atMicros: 1_000n })
}

async function base(sequence: number): Promise<Sidecar> {
  return (await backupWriter(sequence).finish()).base
}

function increment(from: number, to: number, records: readonly BackupRecord[]) {
  const lines = new IncrementLines()
  for (const record of records) lines.add(record as Exclude<BackupRecord, { t: 'end' }>)
  return append(from, to, lines.finish())
}

function append(
  fromSequence: number,
  toSequence: number,
  content: Pick<NewSegment, 'lines' | 'names'>,
  kind: 'increment' | 'catchup' = 'increment',
): Promise<Sidecar> {
  return chain.append({
    kind,
    backupId: null,
    first: null,
    fromSequence,
    toSequence,
    run: { from: 0, to: toSequence, files: toSequence },
    atMicros: 1_000n,
    ...content,
  })
}

async function rejection(run: Promise<unknown>): Promise<string> {
  try {
    await run
  } catch (error) {
    if (isFault(error, 'BACKUP_CORRUPT')) return error.detail!
    throw error
  }
  return 'accepted'
}

async function verified() {
  return verifyBackup(source(), await selectBackup(target, ADDRESS))
}

async function recordsOf(sidecar: Sidecar): Promise<BackupRecord[]> {
  const records = []
  for await (const { record } of readIncrement(source(), sidecar)) records.push(record)
  return records
}

test('increments between the parts of a base are read as they were written', {
  tags: ['slow'],
}, async () => {
  await increment(0, 1, commit(1))
  const writer = backupWriter(2)
  await writer.begin()
  const records = [...commit(2), BLOB, ...commit(3)]
  const second = await increment(1, 3, records)
  const { base } = await writer.finish()
  const empty = await increment(3, 3, [{ t: 'controlTable', table: 'channels' }])
  expect(await recordsOf(second)).toEqual(records)
  expect([base.first, base.number, empty.previousBase]).toEqual([2, 4, 4])
  const backup = await selectBackup(target, ADDRESS)
  expect(joinIncrements(backup).increments.map(({ number }) => number)).toEqual([3, 5])
  expect(await verified()).toEqual({
    counts: {},
    blobBytes: FILE.length,
    increments: 2,
    toSequence: 3,
  })
})

test('a backup can be restored up to the first gap of its increments', async () => {
  await base(5)
  await increment(4, 6, [...commit(5), ...commit(6)])
  await increment(7, 8, commit(8))
  await increment(8, 9, commit(9))
  const backup = await selectBackup(target, ADDRESS)
  expect(joinIncrements(backup)).toMatchObject({ toSequence: 6, increments: [{ number: 2 }] })
})

test('the bases are found without reading the increments between them', {
  tags: ['slow'],
}, async () => {
  const bases = []
  for (let sequence = 0; sequence < 60; sequence++) {
    if (sequence % 20 === 0) bases.push((await base(sequence)).number)
    await increment(sequence, sequence + 1, commit(sequence + 1))
  }
  const read: string[] = []
  const readFile = target.read.bind(target)
  target.read = (name) => {
    read.push(name)
    return readFile(name)
  }
  const found = []
  for await (const { number } of listBases(target, ADDRESS)) found.push(number)
  expect(found).toEqual(bases.reverse())
  expect(read).toHaveLength(4)
  const early = await selectBackup(target, ADDRESS, ({ toSequence }) => toSequence < 20)
  expect([early.base.toSequence, early.segments.length]).toEqual([0, 63])
})

test('more than a thousand segments are read in their order', {
  tags: ['slow'],
  timeout: 60_000,
}, async () => {
  await base(0)
  for (let sequence = 0; sequence < 1_010; sequence++) {
    await append(sequence, sequence, new IncrementLines().finish())
  }
  const again = await ChainWriter.open({ target, sealer, address: ADDRESS })
  expect(again.end).toEqual(chain.end)
  const { segments } = await selectBackup(target, ADDRESS)
  expect(segments.map(({ number }) => number)).toEqual(segments.map((_, i) => i + 1))
  expect(segments).toHaveLength(1_011)
})

test('the names of the blobs of a segment are in a file that its sidecar names', {
  tags: ['slow'],
}, async () => {
  await base(0)
  await increment(0, 1, [...commit(1), BLOB, BLOB])
  const path = `${segmentPath(ADDRESS, 2)}.blobs`
  const text = `${NAME}\n`
  expect(Buffer.from(await collect(target.read(path))).toString()).toBe(text)
  const { segments } = await selectBackup(target, ADDRESS)
  expect(segments.map(({ blobs }) => blobs)).toEqual([null, sha256Hex(text)])
  for (let at = 0; at < text.length; at++) {
    const other = Buffer.from(text)
    other[at]! ^= 1
    await target.write(path, [other])
    expect(await rejection(verified())).toContain(path)
  }
  await target.remove(path)
  expect(await rejection(verified())).toContain(path)
})

test('an increment whose records are not those of its sidecar is rejected', async () => {
  await base(0)
  const cases: readonly (readonly [string, number, readonly BackupRecord[]])[] = [
    ['its commits do not ascend', 2, [...commit(2), ...commit(2)]],
    ['its commits do not end where', 3, commit(2)],
    ['its commits do not end where', 1, commit(2)],
    ['does not belong to the commit before it', 2, [...commit(2), document(1)]],
    ['does not belong to the commit before it', 2, [document(2), ...commit(2)]],
  ]
  for (const [reason, to, records] of cases) {
    const sidecar = await increment(0, to, records)
    const segment = segmentPath(ADDRESS, sidecar.number)
    expect(await rejection(recordsOf(sidecar))).toContain(segment)
    expect(await rejection(recordsOf(sidecar))).toContain(reason)
  }
  const line = (record: BackupRecord) => `${JSON.stringify(record)}\n`
  const [first = '', second = ''] = commit(1).map(line)
  for (const [reason, text] of [
    ['the backup has no end', first + second],
    ['0 records of document, not 1', first + line(end({ commit: 1, document: 1 }))],
    ['records after the end', line(end({})) + first],
    ['no digest of all documents', line({ ...end({}), merkle: sha256Hex('') })],
  ]) {
    const sidecar = await append(0, 1, { lines: Buffer.from(text!), names: [] })
    expect(await rejection(recordsOf(sidecar))).toContain(reason)
  }
})

const end = (counts: Record<string, number>) => ({ t: 'end' as const, counts, merkle: null })

test('a catch-up has documents of several commits after the newest one', async () => {
  await base(1)
  const lines = new IncrementLines()
  lines.add({ t: 'commit', sequence: 9, atMicros: '7' })
  for (const sequence of [7, 2, 9]) lines.add(document(sequence) as never)
  const sidecar = await append(1, 9, lines.finish(), 'catchup')
  expect((await recordsOf(sidecar)).map(({ t }) => t)).toHaveLength(4)
  const early = new IncrementLines()
  early.add({ t: 'commit', sequence: 9, atMicros: '7' })
  early.add(document(1) as never)
  const rejected = await append(1, 9, early.finish(), 'catchup')
  expect(await rejection(recordsOf(rejected))).toContain('does not belong to the commit')
})

test('an append whose sidecar is lost or arrives after all is continued', async () => {
  await base(0)
  let failure: 'before' | 'after' | null = null
  const write = target.write.bind(target)
  target.write = async (name, bytes) => {
    const fails = failure !== null && name.endsWith('.json')
    if (fails && failure === 'after') await write(name, bytes)
    if (fails) throw new Fault('UNAVAILABLE')
    return write(name, bytes)
  }
  for (failure of ['before', 'after'] as const) {
    await expect(increment(0, 1, commit(1))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  }
  failure = null
  await increment(0, 1, commit(1))
  expect(await verified()).toMatchObject({ increments: 2, toSequence: 1 })
})

test('a chain that another program has continued is not overwritten', async () => {
  await base(0)
  const other = await ChainWriter.open({ target, sealer, address: ADDRESS })
  await increment(0, 1, commit(1))
  const ours = chain
  chain = other
  expect(await rejection(increment(0, 2, [...commit(1), ...commit(2)]))).toContain(
    'another program',
  )
  chain = ours
  expect(await verified()).toMatchObject({ increments: 1, toSequence: 1 })
})

/** The directory of the target is a mount: it goes away after a file with this name is written. */
function goneAfter(ending: string): { back: () => void } {
  const away = `${directory}-away`
  const write = target.write.bind(target)
  target.write = async (name, bytes) => {
    const written = await write(name, bytes)
    if (!name.endsWith(ending)) return written
    target.write = write
    renameSync(directory, away)
    throw new Fault('UNAVAILABLE')
  }
  return { back: () => renameSync(away, directory) }
}

test.each(['.age', '.blobs', '.json'])(
  'a directory that goes away after a %s file is continued when it is back',
  async (ending) => {
    await base(0)
    const { back } = goneAfter(ending)
    const records = [...commit(1), BLOB]
    await expect(increment(0, 1, records)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    for (let sequence = 1; sequence <= 2; sequence++) {
      const later = increment(0, sequence, records)
      await expect(later).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    }
    back()
    await increment(1, 2, commit(2))
    expect(await verified()).toMatchObject({ increments: 2, toSequence: 2 })
  },
)

test('a directory that is not there is not an empty one', async () => {
  const { back } = goneAfter('.json')
  await expect(base(0)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  const gone = [
    target.names(''),
    target.sizeOf('x'),
    collect(target.read('x')),
    ChainWriter.open({ target, sealer, address: ADDRESS }),
  ]
  for (const { status } of await Promise.allSettled(gone)) expect(status).toBe('rejected')
  await expect(gone[3]).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  back()
  expect([await target.names('x'), await target.sizeOf('x')]).toEqual([[], null])
  expect(await rejection(collect(target.read('x')))).toContain('missing')
})

test('nothing is appended to a target that has another chain than before', async () => {
  await base(0)
  const mounted = `${directory}-mounted`
  renameSync(directory, mounted)
  mkdirSync(directory)
  expect(await rejection(increment(0, 1, commit(1)))).toContain('it is missing')
  const other = await ChainWriter.open({ target, sealer, address: ADDRESS })
  const ours = chain
  chain = other
  await base(7)
  chain = ours
  expect(await rejection(increment(0, 1, commit(1)))).toContain('another program')
  rmSync(directory, { recursive: true })
  renameSync(mounted, directory)
  await increment(0, 1, commit(1))
  expect(await verified()).toMatchObject({ increments: 1, toSequence: 1 })
})
