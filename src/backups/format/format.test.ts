import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import zlib from 'node:zlib'
import { Decrypter, generateHybridIdentity, generateX25519Identity } from 'age-encryption'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { S3Server } from '../../../testing/servers/s3-server.ts'
import { isFault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import { realSystem } from '../../system/system.ts'
import type { EnvironmentId, HistoryId } from '../../value/ids.ts'
import { formatSidecar, type Sidecar } from '../../wire/files/backups.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { S3Target } from '../targets/s3.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { AgeFailure, collect, Opener, recipientOf, Sealer } from './age-files.ts'
import { readBase, verifyBackup } from './backup-reader.ts'
import { BackupWriter } from './backup-writer.ts'
import {
  appendSegment,
  blobPath,
  type HistoryAddress,
  listEnvironments,
  listHistories,
  segmentPath,
  selectBackup,
} from './chain.ts'
import { ChainWriter } from './chain-writer.ts'
import { MerkleTree } from './merkle-tree.ts'
import { SEGMENT_BYTES, sealSegment } from './segments.ts'

const system = realSystem()
const ADDRESS: HistoryAddress = {
  environmentId: 'env_00000000000000000000000001' as EnvironmentId,
  historyId: 'hst_00000000000000000000000001' as HistoryId,
}
const FILE = Buffer.from('the bytes of a file')
/** The name that the server derives from the digest with a key of its own. */
const NAME = sha256Hex('a name')

let identity: string
let recipient: string

beforeAll(async () => {
  identity = await generateX25519Identity()
  recipient = await recipientOf(identity)
})

/** Targets whose stored bytes a test can alter. */
interface Bench {
  readonly target: BackupTarget
  dispose(): Promise<void>
}

async function directoryBench(): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'backups-'))
  return {
    target: new DirectoryTarget(directory),
    dispose: async () => rmSync(directory, { recursive: true }),
  }
}

let s3: S3Server

async function s3Bench(): Promise<Bench> {
  s3 = new S3Server()
  const address = {
    endpoint: s3.endpoint,
    bucket: 'backups',
    region: 'auto',
    accessKeyId: 'a',
    secretAccessKey: 's',
  }
  return { target: new S3Target({ address, prefix: 'svc/' }), dispose: () => s3.stop() }
}

/** Writes a backup with two documents and a file; `padding` makes its documents longer. */
async function writeBackup(target: BackupTarget, padding = 0) {
  const sealer = new Sealer([recipient])
  await target.write(blobPath(ADDRESS, NAME), sealer.seal([FILE]))
  const writer = new BackupWriter({
    chain: await ChainWriter.open({ target, sealer, address: ADDRESS }),
    backupId: system.ids.make('bkp'),
    sequence: 7,
    atMicros: 1_000n,
  })
  for (const number of [1, 2]) {
    await writer.add({
      t: 'document',
      id: `notes_${String(number).padStart(26, '0')}`,
      createdAtMicros: '-5',
      sequence: number,
      text: `{"body":"${'é'.repeat(padding)}"}`,
    })
  }
  await writer.add({ t: 'blob', sha256: sha256Hex(FILE), bytes: FILE.length, name: NAME })
  return writer.finish()
}

async function verified(target: BackupTarget, secret = identity) {
  const source = { target, opener: new Opener([secret]) }
  return verifyBackup(source, await selectBackup(target, ADDRESS))
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

/** All names of the target below a directory. */
async function allNames(target: BackupTarget, directory: string): Promise<string[]> {
  const names = await target.names(directory)
  const nested = names.map(async (name) => {
    const path = directory === '' ? name : `${directory}/${name}`
    return /\.(?:age|blobs|json)$/.test(name) ? [path] : allNames(target, path)
  })
  return (await Promise.all(nested)).flat()
}

describe.each([
  ['directory', directoryBench],
  ['S3', s3Bench],
])('backups in a target: %s', (_, make) => {
  let bench: Bench
  beforeEach(async () => {
    bench = await make()
  })
  afterEach(() => bench.dispose())

  test('a backup of several segments is read as it was written', { tags: ['slow'] }, async () => {
    const { target } = bench
    const first = await writeBackup(target)
    const written = await writeBackup(target, SEGMENT_BYTES / 2)
    expect(written.base).toMatchObject({ kind: 'base', first: first.base.number + 1, number: 4 })
    const backup = await selectBackup(target, ADDRESS)
    expect(backup.segments.map(({ number }) => number)).toEqual([2, 3, 4])
    expect(await verified(target)).toEqual({
      counts: { document: 2, blob: 1 },
      blobBytes: FILE.length,
      increments: 0,
      toSequence: 7,
    })
    const records = []
    const source = { target, opener: new Opener([identity]) }
    for await (const { record } of readBase(source, backup)) records.push(record)
    expect(records[1]).toEqual({
      t: 'document',
      id: 'notes_00000000000000000000000002',
      createdAtMicros: '-5',
      sequence: 2,
      text: `{"body":"${'é'.repeat(SEGMENT_BYTES / 2)}"}`,
    })
    expect(await listEnvironments(target)).toEqual([ADDRESS.environmentId])
    expect(await listHistories(target, ADDRESS.environmentId)).toEqual([ADDRESS.historyId])
  })

  test('an earlier backup is selected by its ID', async () => {
    const { target } = bench
    const { base } = await writeBackup(target)
    await writeBackup(target)
    const backup = await selectBackup(target, ADDRESS, ({ backupId }) => backupId === base.backupId)
    expect(backup.base.number).toBe(1)
    const source = { target, opener: new Opener([identity]) }
    expect((await verifyBackup(source, backup)).counts).toEqual({ document: 2, blob: 1 })
  })

  test('a segment, a sidecar and a file that are missing are named', {
    tags: ['slow'],
  }, async () => {
    const { target } = bench
    await writeBackup(target, SEGMENT_BYTES / 4)
    for (const name of await allNames(target, '')) {
      const bytes = await collect(target.read(name))
      await target.remove(name)
      // Without its base a backup does not exist.
      const named = name.endsWith('2.json') ? 'hst_' : name
      expect(await rejection(verified(target))).toContain(named)
      await target.write(name, [bytes])
    }
    expect((await verified(target)).counts.document).toBe(2)
  })

  test('segments that change places are named', { tags: ['slow'] }, async () => {
    const { target } = bench
    await writeBackup(target, SEGMENT_BYTES / 4)
    const [one, two] = [1, 2].map((number) => segmentPath(ADDRESS, number))
    for (const endings of [['.age'], ['.json'], ['.age', '.json']]) {
      const swap = async () => {
        for (const ending of endings) {
          const [a, b] = [one + ending, two + ending]
          const bytes = await collect(target.read(a))
          await target.write(a, [await collect(target.read(b))])
          await target.write(b, [bytes])
        }
      }
      await swap()
      expect(await rejection(verified(target))).toMatch(/hst_\w+\/0{9}\/0{11}[12]\./)
      await swap()
    }
    expect((await verified(target)).counts.document).toBe(2)
  })

  test('a write that fails stores no part of its bytes', async () => {
    const { target } = bench
    await target.write('env/a.age', [Buffer.from('before')])
    async function* failing() {
      yield new Uint8Array(6 * 1024 * 1024)
      throw new Error('the source failed')
    }
    await expect(target.write('env/a.age', failing())).rejects.toThrow('the source failed')
    expect([null, 'before'.length]).toContain(await target.sizeOf('env/a.age'))
    expect(['', 'a.age']).toContain((await target.names('env')).join())
  })

  test('long bytes are stored as they were, and their number is returned', {
    tags: ['slow'],
  }, async () => {
    const { target } = bench
    const piece = Buffer.alloc(3 * 1024 * 1024, 'abcdefg')
    const pieces = Array.from({ length: 5 }, () => piece)
    expect(await target.write('env/long.age', pieces)).toBe(5 * piece.length)
    expect(await target.sizeOf('env/long.age')).toBe(5 * piece.length)
    expect(sha256Hex(await collect(target.read('env/long.age')))).toBe(sha256Hex(...pieces))
    expect(await target.sizeOf('env/none.age')).toBeNull()
    expect(await rejection(collect(target.read('env/none.age')))).toContain('env/none.age')
  })
})

describe('a damaged backup', () => {
  let bench: Bench
  beforeEach(async () => {
    bench = await directoryBench()
  })
  afterEach(() => bench.dispose())

  test('every byte that is altered is found, and its file is named', {
    tags: ['slow'],
    timeout: 60_000,
  }, async () => {
    const { target } = bench
    await writeBackup(target)
    let altered = 0
    for (const name of await allNames(target, '')) {
      const bytes = await collect(target.read(name))
      for (let at = 0; at < bytes.length; at++) {
        const other = new Uint8Array(bytes)
        other[at]! ^= 1 << (at % 8)
        await target.write(name, [other])
        const path = name.replace(/\.(?:age|blobs|json)$/, '')
        expect(await rejection(verified(target)), `byte ${at} of ${name}`).toContain(path)
        altered += 1
      }
      await target.write(name, [bytes])
    }
    expect(altered).toBeGreaterThan(1_000)
  })

  test('a file that ends early or has more bytes is found', async () => {
    const { target } = bench
    await writeBackup(target)
    for (const name of await allNames(target, '')) {
      const bytes = await collect(target.read(name))
      for (const other of [
        bytes.subarray(1),
        bytes.subarray(0, -1),
        Buffer.concat([bytes, bytes]),
      ]) {
        await target.write(name, [other])
        expect(await rejection(verified(target))).toContain(name.replace(/\.\w+$/, ''))
      }
      await target.write(name, [bytes])
    }
  })

  test('a segment that others encrypted with another chain is found', async () => {
    const { target } = bench
    await writeBackup(target)
    const { base } = await selectBackup(target, ADDRESS)
    const { sha256: _, bytes: __, ...segment } = base
    const forged = { ...segment, toSequence: 8 }
    const sealed = await sealSegment(new Sealer([recipient]), forged, { lines: new Uint8Array() })
    const sidecar: Sidecar = {
      ...segment,
      sha256: sealed.sidecar.sha256,
      bytes: sealed.file.length,
    }
    await appendSegment(target, { ...sealed, sidecar })
    expect(await rejection(verified(target))).toContain('its first line and its sidecar differ')
  })

  test('a part that was replaced by another whole one is found', async () => {
    const { target } = bench
    await writeBackup(target, SEGMENT_BYTES / 4)
    const { segments } = await selectBackup(target, ADDRESS)
    const { sha256: _, bytes: __, ...segment } = segments[0]!
    const other = await sealSegment(new Sealer([recipient]), segment, {
      lines: new Uint8Array(),
    })
    await appendSegment(target, other)
    const found = await rejection(selectBackup(target, ADDRESS))
    expect(found).toContain('000000000002.json: it follows another segment')
  })

  test('another identity does not open it', async () => {
    const { target } = bench
    await writeBackup(target)
    const other = await generateX25519Identity()
    expect(await rejection(verified(target, other))).toContain('the identity does not open it')
  })

  test('parts without a base are no backup, and the next backup follows them', async () => {
    const { target } = bench
    await writeBackup(target, SEGMENT_BYTES / 4)
    await target.remove(`${segmentPath(ADDRESS, 2)}.json`)
    expect(await rejection(verified(target))).toContain('it has no whole backup')
    await writeBackup(target)
    const { base, segments } = await selectBackup(target, ADDRESS)
    expect([base.first, segments.length]).toEqual([2, 1])
    expect((await verified(target)).counts.document).toBe(2)
  })
})

describe('age files', () => {
  const LENGTHS = [0, 1, 65_535, 65_536, 65_537, 131_072, 700_000]

  test('the library opens what is sealed, and the other way round', {
    tags: ['slow'],
  }, async () => {
    const hybrid = await generateHybridIdentity()
    const recipients = [recipient, await recipientOf(hybrid)]
    for (const length of LENGTHS) {
      const plain = Buffer.alloc(length, 'age')
      const sealer = new Sealer(recipients)
      const file = await collect(sealer.seal([plain]))
      expect(await sealer.sealedLength(length)).toBe(file.length)
      for (const secret of [identity, hybrid]) {
        const decrypter = new Decrypter()
        decrypter.addIdentity(secret)
        expect(sha256Hex(await decrypter.decrypt(file))).toBe(sha256Hex(plain))
        expect(sha256Hex(await collect(new Opener([secret]).open([file])))).toBe(sha256Hex(plain))
      }
    }
  })

  test('a file is opened in pieces of any length', async () => {
    const plain = Buffer.alloc(140_000, 'pieces')
    const file = await collect(new Sealer([recipient]).seal([plain]))
    for (const length of [1, 7, 1_000, 65_552]) {
      const pieces = Array.from({ length: Math.ceil(file.length / length) }, (_, i) =>
        file.subarray(i * length, (i + 1) * length),
      )
      expect(sha256Hex(await collect(new Opener([identity]).open(pieces)))).toBe(sha256Hex(plain))
    }
  })

  test('a reader that stops early ends the source', async () => {
    const file = await collect(new Sealer([recipient]).seal([Buffer.alloc(900_000)]))
    const ended: string[] = []
    async function* source(name: string, bytes: Uint8Array) {
      try {
        for (let at = 0; at < bytes.length; at += 50_000) yield bytes.subarray(at, at + 50_000)
      } finally {
        ended.push(name)
      }
    }
    for await (const _ of new Opener([identity]).open(source('opened', file))) break
    const other = new Opener([await generateX25519Identity()])
    await expect(collect(other.open(source('rejected', file)))).rejects.toThrow(AgeFailure)
    for await (const _ of new Sealer([recipient]).seal(source('unsealed', file))) break
    let pieces = 0
    for await (const _ of new Sealer([recipient]).seal(source('sealed', file))) {
      if (++pieces === 3) break
    }
    // What was not begun has nothing to end.
    expect(ended).toEqual(['opened', 'rejected', 'sealed'])
  })

  test('recipients and identities that are not valid are rejected without quoting them', () => {
    expect(() => new Sealer([])).toThrow(AgeFailure)
    expect(() => new Sealer([`${recipient.slice(0, -1)}b`])).toThrow('a recipient')
    expect(() => new Opener([])).toThrow(AgeFailure)
    try {
      new Opener([`${identity}Q`])
      expect.unreachable()
    } catch (error) {
      expect(String(error)).not.toContain(identity)
      expect((error as Error).cause).toBeUndefined()
    }
  })
})

test('the roots of Merkle trees are those of RFC 6962', () => {
  const node = (left: string, right: string) =>
    sha256Hex(Buffer.concat([Buffer.of(1), Buffer.from(left, 'hex'), Buffer.from(right, 'hex')]))
  const rootOf = (leaves: readonly string[]): string => {
    if (leaves.length === 1)
      return sha256Hex(Buffer.concat([Buffer.of(0), Buffer.from(leaves[0]!)]))
    let half = 1
    while (half * 2 < leaves.length) half *= 2
    return node(rootOf(leaves.slice(0, half)), rootOf(leaves.slice(half)))
  }
  const tree = new MerkleTree()
  expect(tree.root()).toBe(sha256Hex(''))
  const leaves: string[] = []
  for (let i = 0; i < 20; i++) {
    leaves.push(`leaf ${i}`)
    tree.add(leaves.at(-1)!)
    expect(tree.root()).toBe(rootOf(leaves))
  }
})

/** The steps of docs/backups-format.md, with the libraries of age and zstd and nothing of src. */
describe('another program', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await directoryBench()
    await writeBackup(bench.target, SEGMENT_BYTES / 4)
  })
  afterAll(() => bench.dispose())

  test('reads a backup by the description of the format', async () => {
    const { readdir, readFile } = await import('node:fs/promises')
    const { createHash, hash } = await import('node:crypto')
    const decrypter = new Decrypter()
    decrypter.addIdentity(identity)
    const history = join(bench.target.location, ADDRESS.environmentId, ADDRESS.historyId)
    const root = join(history, '000000000')
    const names = (await readdir(root)).filter((name) => name.endsWith('.json')).sort()
    let previous: string | null = null
    const records: Record<string, unknown>[] = []
    for (const name of names) {
      const sidecarBytes = await readFile(join(root, name))
      const { sha256, bytes, ...segment } = JSON.parse(sidecarBytes.toString())
      expect(segment.previous).toBe(previous)
      previous = hash('sha256', sidecarBytes)
      const file = await readFile(join(root, name.replace('.json', '.age')))
      expect([file.length, hash('sha256', file)]).toEqual([bytes, sha256])
      const plain = zlib.zstdDecompressSync(await decrypter.decrypt(file)).toString()
      const [header, ...lines] = plain.trimEnd().split('\n')
      expect(JSON.parse(header!)).toEqual({ t: 'segment', ...segment })
      records.push(...lines.map((line) => JSON.parse(line)))
    }
    const digest = (...parts: (Buffer | string)[]) => {
      const hasher = createHash('sha256')
      for (const part of parts) hasher.update(part)
      return hasher.digest()
    }
    const [one, two] = records
      .filter(({ t }) => t === 'document')
      .map(({ id, createdAtMicros, sequence, text }) =>
        digest(Buffer.of(0), JSON.stringify([id, createdAtMicros, sequence, text])),
      )
    const merkle = digest(Buffer.of(1), one!, two!).toString('hex')
    expect(records.at(-1)).toEqual({ t: 'end', counts: { document: 2, blob: 1 }, merkle })
    const blob = records.find(({ t }) => t === 'blob')!
    const stored = await readFile(join(history, 'blobs', NAME.slice(0, 2), `${blob.name}.age`))
    expect(hash('sha256', await decrypter.decrypt(stored))).toBe(blob.sha256)
  })

  test('finds no sidecar that is written in another way', async () => {
    const { base } = await selectBackup(bench.target, ADDRESS)
    const path = `${segmentPath(ADDRESS, base.number)}.json`
    const text = formatSidecar(base)
    await bench.target.write(path, [Buffer.from(text.replace('{', '{ '))])
    expect(await rejection(selectBackup(bench.target, ADDRESS))).toContain(path)
    await bench.target.write(path, [Buffer.from(text)])
  })
})
