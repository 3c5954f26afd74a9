/**
 * The location and the retention of archive segments, in the root and in an S3-compatible store.
 */
import { Database } from 'bun:sqlite'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { openTestLogs, type TestLogs } from '../../../testing/logs.ts'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { S3Server } from '../../../testing/servers/s3-server.ts'
import { S3Objects } from '../../storage/blobs/s3-objects.ts'
import { S3Segments } from '../../storage/logs/remote-segments.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
let opened: TestLogs
let s3: S3Server | null = null

afterEach(async () => {
  await opened.dispose()
  await s3?.stop()
  s3 = null
})

async function openWithS3(): Promise<S3Server> {
  const server = new S3Server()
  s3 = server
  const { endpoint } = server
  const keys = { accessKeyId: 'id', secretAccessKey: 'secret' }
  const address = { endpoint, bucket: 'logs', region: 'us-east-1', ...keys }
  const remote = new S3Segments(new S3Objects(address, 2_000), ENVIRONMENT_ID)
  opened = await openTestLogs({ remote })
  return server
}

async function write(...messages: readonly string[]): Promise<void> {
  for (const message of messages) opened.log.info('test.event', { message })
  await opened.store.flushed()
}

/** Each message becomes a segment of its own. */
async function writeSegments(...messages: readonly string[]): Promise<void> {
  for (const message of messages) {
    await write(message)
    opened.system.advance(HOUR)
    await opened.store.archive()
  }
}

const prune = (apply: boolean) =>
  opened.logs.prune({
    beforeMicros: String(opened.system.nowMicros()),
    maximum: 1_000,
    apply,
    ...(apply && { environmentId: opened.logs.environmentId }),
  })
const directory = () => join(opened.directory, 'logs')
const inRoot = () => readdirSync(directory()).toSorted()
const keys = ({ objects }: S3Server) => [...objects.keys()].toSorted()
const status = async () => (await opened.logs.health()).status
const messagesIn = (bytes: Uint8Array) => {
  const [, ...lines] = Buffer.from(Bun.zstdDecompressSync(bytes)).toString().trimEnd().split('\n')
  return lines.map((line) => (JSON.parse(line) as { message: string }).message)
}
const headIn = (bytes: Uint8Array) => {
  return JSON.parse(Buffer.from(Bun.zstdDecompressSync(bytes)).toString().split('\n')[0]!)
}

describe('segments in an S3-compatible store', () => {
  test('segments are read in the store before the pruning, and the root has none', async () => {
    const server = await openWithS3()
    await writeSegments('one', 'two')
    expect(inRoot()).toEqual([])
    expect(keys(server).every((key) => key.startsWith(`${ENVIRONMENT_ID}/logs/`))).toBe(true)
    expect(keys(server).map((key) => messagesIn(server.objects.get(key)!))).toEqual([
      ['one'],
      ['two'],
    ])
    expect(await opened.logs.archiveStatus()).toMatchObject({ segments: 2 })
    await opened.close()
    opened = await opened.reopen()
    await writeSegments('three')
    expect(await prune(true)).toMatchObject({ eligible: 3, pruned: 3 })
    expect(await status()).toBe('healthy')
  })

  test.each(['missing', 'damaged'])(
    'a segment in the store that is %s stops the pruning',
    async (how) => {
      const server = await openWithS3()
      await writeSegments('one', 'two', 'three')
      const key = keys(server)[1]!
      const bytes = server.objects.get(key)!
      if (how === 'missing') server.objects.delete(key)
      else server.objects.set(key, bytes.with(bytes.length >> 1, bytes[bytes.length >> 1]! ^ 1))
      expect(await prune(true)).toMatchObject({ eligible: 1, pruned: 1 })
      const name = key.split('/').at(-1)
      expect(opened.degraded).toEqual([`the segment ${name} is missing or damaged`])
      expect(await status()).toBe('degraded')
      server.objects.set(key, bytes)
      expect(await prune(true)).toMatchObject({ eligible: 2, pruned: 2 })
      expect(await status()).toBe('healthy')
    },
  )

  test('segments stay in the root while the store fails, and records are kept', async () => {
    const server = await openWithS3()
    await writeSegments('one')
    server.failure = 'error'
    await writeSegments('two')
    expect(inRoot()).toHaveLength(1)
    expect(await status()).toBe('degraded')
    await expect(prune(true)).rejects.toMatchObject({ code: 'PRODUCT_UNAVAILABLE' })
    await write('three')
    const { items } = await opened.logs.page({}, 10)
    expect(items.map(({ message }) => message)).toEqual(['one', 'two', 'three'])
    server.failure = null
    await opened.store.archive()
    expect([inRoot(), keys(server).length, await status()]).toEqual([[], 2, 'healthy'])
    expect(await prune(true)).toMatchObject({ eligible: 2 })
  })

  test('segments stay in the store if a power failure undid the record of their move', async () => {
    const server = await openWithS3()
    await writeSegments('one')
    await opened.close()
    const database = new Database(join(opened.directory, 'logs.db'))
    database.run(`update log_segments set place = 'root'`)
    database.close()
    opened = await opened.reopen()
    await writeSegments('two')
    expect([keys(server).length, inRoot(), await status()]).toEqual([2, [], 'healthy'])
  })

  test('segments that were written to the root before are moved to the store', async () => {
    opened = await openTestLogs()
    await writeSegments('one', 'two')
    await opened.close()
    const before = opened.directory
    const { system } = opened
    const server = await openWithS3()
    await opened.dispose()
    const remote = new S3Segments(
      new S3Objects({
        endpoint: server.endpoint,
        bucket: 'logs',
        region: 'us-east-1',
        accessKeyId: 'id',
        secretAccessKey: 'secret',
      }),
      ENVIRONMENT_ID,
    )
    opened = await openTestLogs({ directory: before, system, remote })
    expect((await opened.logs.archiveStatus()).frontier).toBeNull()
    await opened.store.archive()
    expect([inRoot(), keys(server).length]).toEqual([[], 2])
    expect(await prune(true)).toMatchObject({ pruned: 2 })
  })
})

describe.each(['the root', 'an S3-compatible store'])(
  'the retention of segments in %s',
  (place) => {
    const open = async () => {
      if (place === 'the root') opened = await openTestLogs()
      else await openWithS3()
    }
    const stored = (): readonly Uint8Array[] => {
      if (s3 !== null) return keys(s3).map((key) => s3!.objects.get(key)!)
      return inRoot().map((name) => readFileSync(join(directory(), name)))
    }

    test('the retention removes the oldest segments and keeps the chain verifiable', async () => {
      await open()
      await writeSegments('one', 'two')
      const digests = stored().map((bytes) => new Bun.CryptoHasher('sha256').update(bytes).digest())
      opened.system.advance(5 * DAY)
      await writeSegments('three')
      opened.system.advance(5 * DAY)
      await opened.store.archive()
      expect(stored().map(messagesIn)).toEqual([['three']])
      const sha256 = digests[1]!.toString('hex')
      expect(opened.removed).toMatchObject([{ segments: 2, sha256 }])
      expect(headIn(stored()[0]!)).toMatchObject({ number: 3, previous: sha256 })
      await opened.close()
      opened = await opened.reopen()
      await writeSegments('four')
      expect(headIn(stored()[1]!).number).toBe(4)
      expect(await prune(true)).toMatchObject({ pruned: 1 })
      expect(await opened.logs.archiveStatus()).toMatchObject({ segments: 2 })
      expect([opened.removed, opened.degraded, await status()]).toEqual([[], [], 'healthy'])
    })

    test('the retention keeps a segment while the hot store has one of its records', async () => {
      await open()
      await writeSegments('one')
      const [bytes] = stored()
      // Damaged, so that its record is not pruned.
      if (s3 === null) writeFileSync(join(directory(), inRoot()[0]!), bytes!.subarray(1))
      else s3.objects.set(keys(s3)[0]!, bytes!.subarray(1))
      opened.system.advance(20 * DAY)
      await opened.store.archive()
      expect([stored().length, opened.removed.length, await status()]).toEqual([1, 0, 'degraded'])
    })

    test('the chain continues after every segment was removed', async () => {
      await open()
      await writeSegments('one', 'two')
      opened.system.advance(20 * DAY)
      await opened.store.archive()
      expect(stored()).toEqual([])
      await opened.close()
      opened = await opened.reopen()
      await writeSegments('three')
      expect(stored().map(headIn)).toMatchObject([{ number: 3, previous: expect.any(String) }])
      expect(await prune(true)).toMatchObject({ pruned: 1 })
    })
  },
)

test('removed segments whose objects could not be removed are removed later', async () => {
  const server = await openWithS3()
  await writeSegments('one')
  await prune(true)
  opened.system.advance(20 * DAY)
  server.failure = 'error'
  await opened.store.archive()
  expect([keys(server).length, await status()]).toEqual([1, 'degraded'])
  server.failure = null
  await opened.store.archive()
  expect([keys(server), await status(), opened.removed.length]).toEqual([[], 'healthy', 1])
})

test('files of a process that was killed are removed at the next start', async () => {
  opened = await openTestLogs()
  await writeSegments('one')
  const [name] = inRoot()
  await opened.close()
  const database = new Database(join(opened.directory, 'logs.db'))
  // The segment was marked as removed, and its file was not removed yet.
  database.run('update log_segments set removed = 1')
  database.close()
  writeFileSync(join(directory(), `${name}.tmp`), 'half')
  opened = await opened.reopen()
  expect(inRoot()).toEqual([])
  await writeSegments('two')
  expect(await status()).toBe('healthy')
})

test('a turn that closes no segment lets the write-ahead log start over', {
  tags: ['slow'],
}, async () => {
  opened = await openTestLogs()
  await write('one')
  await opened.store.archive()
  for (let batch = 0; batch < 12; batch++) {
    opened.system.advance(1_000)
    for (let i = 0; i < 1_000; i++) opened.log.info('test.event', { message: 'x'.repeat(1_000) })
    await opened.store.flushed()
  }
  const { size } = statSync(join(opened.directory, 'logs.db-wal'))
  expect(size).toBeLessThan(8 * 2 ** 20)
})

test('segments of a lost logs.db are not replaced', async () => {
  opened = await openTestLogs()
  await writeSegments('one')
  const before = inRoot()
  await opened.close()
  for (const suffix of ['', '-wal']) {
    rmSync(join(opened.directory, `logs.db${suffix}`), { force: true })
  }
  opened = await opened.reopen()
  await writeSegments('two')
  const names = inRoot()
  expect(names.flatMap((name) => messagesIn(readFileSync(join(directory(), name)))).sort()).toEqual(
    ['one', 'two'],
  )
  expect(names).toContain(before[0])
})

test('segments that an older version wrote are read under their names', async () => {
  opened = await openTestLogs()
  await writeSegments('one', 'two')
  await opened.close()
  const database = new Database(join(opened.directory, 'logs.db'))
  for (const column of ['name', 'place', 'removed']) {
    database.run(`alter table log_segments drop column ${column}`)
  }
  database.run('drop table log_migrations')
  database.run('pragma user_version = 1')
  database.close()
  const names = inRoot()
  for (const [i, name] of names.entries()) {
    renameSync(join(directory(), name), join(directory(), `000000000${i + 1}.jsonl.zst`))
  }
  opened = await opened.reopen()
  await writeSegments('three')
  expect(await prune(true)).toMatchObject({ pruned: 3 })
  expect(existsSync(join(directory(), '0000000001.jsonl.zst'))).toBe(true)
})

test('an archive that cannot be written is degraded until it can', async () => {
  opened = await openTestLogs()
  const away = join(opened.directory, 'away')
  renameSync(directory(), away)
  writeFileSync(directory(), 'not a directory')
  await writeSegments('one')
  expect([await status(), await status()]).toEqual(['degraded', 'degraded'])
  rmSync(directory())
  mkdirSync(directory())
  await opened.store.archive()
  expect([await status(), inRoot().length]).toEqual(['healthy', 1])
})
