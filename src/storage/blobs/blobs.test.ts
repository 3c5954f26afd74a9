/** The rules of the bytes of files, which every store keeps: files in the root, and S3. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { S3Server } from '../../../testing/servers/s3-server.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { BlobStore, Content } from './blobs.ts'
import { FileBlobs } from './file-blobs.ts'
import { S3Blobs } from './s3-blobs.ts'

const ENVIRONMENT = 'env_01JZ0000000000000000000000'

interface ReopenOptions {
  readonly freeFloorBytes?: number
  /** Milliseconds for a request to an S3-compatible store. */
  readonly requestMillis?: number
}

/** A store, and functions that inspect its contents. */
interface Bench {
  readonly blobs: BlobStore
  /** Names of files that are being written. */
  staged(): readonly string[]
  /** Leaves a file as a process that was killed does. */
  leave(name: string, bytes: Uint8Array): void
  /** Replaces stored bytes. */
  alter(sha256: string, bytes: Uint8Array): void
  quarantined(): readonly string[]
  reopen(options?: ReopenOptions): Promise<BlobStore>
  close(): Promise<void>
}

interface FileBench extends Bench {
  readonly directory: string
}

async function fileBench(): Promise<FileBench> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-blobs-'))
  const reopen = ({ freeFloorBytes = 0 }: ReopenOptions = {}) =>
    FileBlobs.open({ directory, freeFloorBytes })
  return {
    directory,
    blobs: await reopen(),
    reopen,
    staged: () => readdirSync(join(directory, 'temporary')),
    leave: (name, bytes) => writeFileSync(join(directory, 'temporary', name), bytes),
    alter: (sha256, bytes) =>
      writeFileSync(join(directory, 'sha256', sha256.slice(0, 2), sha256.slice(2)), bytes),
    quarantined: () => readdirSync(join(directory, 'damaged')),
    close: async () => rmSync(directory, { recursive: true }),
  }
}

let s3: S3Server

async function s3Bench(): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-blobs-'))
  s3 = new S3Server()
  const address = {
    endpoint: s3.endpoint,
    bucket: 'files',
    region: 'us-east-1',
    accessKeyId: 'id',
    secretAccessKey: 'secret',
  }
  const reopen = ({ freeFloorBytes = 0, requestMillis = 10_000 }: ReopenOptions = {}) =>
    S3Blobs.open({
      address,
      environmentId: ENVIRONMENT,
      requestMillis,
      freeFloorBytes,
      stagingDirectory: join(directory, 'temporary'),
    })
  const folder = (name: string) => {
    const prefix = `${ENVIRONMENT}/${name}/`
    const keys = [...s3.objects.keys()].filter((key) => key.startsWith(prefix))
    return keys.map((key) => key.slice(prefix.length))
  }
  return {
    blobs: await reopen(),
    reopen,
    staged: () => readdirSync(join(directory, 'temporary')),
    leave: (name, bytes) => writeFileSync(join(directory, 'temporary', name), bytes),
    alter: (sha256, bytes) => s3.objects.set(`${ENVIRONMENT}/sha256/${sha256}`, bytes),
    quarantined: () => folder('damaged'),
    close: async () => {
      await s3.stop()
      rmSync(directory, { recursive: true })
    },
  }
}

const bytesOf = (text: string) => new TextEncoder().encode(text)
const contentOf = (bytes: Uint8Array): Content => ({
  sha256: sha256Hex(bytes),
  size: bytes.length,
})

async function store(blobs: Pick<BlobStore, 'stage'>, ...chunks: Uint8Array[]): Promise<Content> {
  const staged = await blobs.stage(0)
  try {
    for (const chunk of chunks) await staged.write(chunk)
    const content = await staged.finish()
    await staged.commit()
    return content
  } finally {
    await staged.discard()
  }
}

const listed = async (blobs: BlobStore) => {
  const found: string[] = []
  for await (const { sha256 } of blobs.list()) found.push(sha256)
  return found.sort()
}

const sentBy = async (blobs: BlobStore, content: Content, start: number, end: number) =>
  new Response(await blobs.open(content, { start, end })).text()

describe.each([
  ['files', fileBench],
  ['S3', s3Bench],
])('bytes in %s', (_, openBench) => {
  let bench: Bench
  let blobs: BlobStore
  beforeEach(async () => {
    bench = await openBench()
    blobs = bench.blobs
  })
  afterEach(() => bench.close())

  test('bytes are addressed by their digest, and equal bytes are stored once', {
    tags: ['slow'],
  }, async () => {
    const content = await store(blobs, bytesOf('hel'), bytesOf('lo'))
    expect(content).toEqual(contentOf(bytesOf('hello')))
    expect(await store(blobs, bytesOf('hello'))).toEqual(content)
    expect(await listed(blobs)).toEqual([content.sha256])
    expect(new Uint8Array(await blobs.read(content))).toEqual(bytesOf('hello'))
    expect(bench.staged()).toEqual([])
  })

  test('bytes are sent whole and in parts', async () => {
    const content = await store(blobs, bytesOf('0123456789'))
    expect(await sentBy(blobs, content, 0, 10)).toBe('0123456789')
    expect(await sentBy(blobs, content, 3, 5)).toBe('34')
    expect(await sentBy(blobs, content, 9, 10)).toBe('9')
    const empty = await store(blobs)
    expect(await sentBy(blobs, empty, 0, 0)).toBe('')
    expect(await blobs.read(empty)).toHaveLength(0)
  })

  test('bytes that are long arrive whole', { tags: ['slow'] }, async () => {
    const chunk = new Uint8Array(1024 * 1024).map((_, i) => (i * 31) % 251)
    const content = await store(blobs, ...Array.from({ length: 20 }, () => chunk))
    expect(content.size).toBe(20 * 1024 * 1024)
    const sent = await new Response(
      await blobs.open(content, { start: 0, end: content.size }),
    ).bytes()
    expect(sha256Hex(sent)).toBe(content.sha256)
    expect(await blobs.check(content, { quick: false })).toBe('whole')
  })

  test('bytes that were not committed leave nothing, discarded or not', async () => {
    const staged = await blobs.stage(0)
    await staged.write(bytesOf('half'))
    expect(bench.staged()).toHaveLength(1)
    await staged.discard()
    expect(bench.staged()).toEqual([])
    bench.leave('1', bytesOf('of a process that was killed'))
    const again = await bench.reopen()
    expect(bench.staged()).toEqual([])
    expect(await listed(again)).toEqual([])
  })

  test('bytes are removed, and removing them again does nothing', { tags: ['slow'] }, async () => {
    const content = await store(blobs, bytesOf('x'))
    const other = await store(blobs, bytesOf('y'))
    await blobs.remove(content.sha256)
    await blobs.remove(content.sha256)
    expect(await listed(blobs)).toEqual([other.sha256])
    expect(await blobs.check(content, { quick: true })).toBe('missing')
    await expect(blobs.read(content)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    await expect(blobs.open(content, { start: 0, end: 1 })).rejects.toMatchObject({
      code: 'PRODUCT_CORRUPT',
    })
  })

  test('bytes are all listed, page by page', async () => {
    const contents = []
    for (let i = 0; i < 7; i++) contents.push(await store(blobs, bytesOf(`content ${i}`)))
    expect(await listed(blobs)).toEqual(contents.map(({ sha256 }) => sha256).sort())
  })

  test('bytes that are altered are found, and set aside', { tags: ['slow'] }, async () => {
    const content = await store(blobs, bytesOf('hello'))
    expect(await blobs.check(content, { quick: false })).toBe('whole')
    bench.alter(content.sha256, bytesOf('hellO'))
    expect(await blobs.check(content, { quick: false })).toBe('damaged')
    await expect(blobs.read(content)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    bench.alter(content.sha256, bytesOf('hell'))
    expect(await blobs.check(content, { quick: true })).toBe('damaged')
    await blobs.quarantine(content.sha256)
    expect(bench.quarantined()).toEqual([content.sha256])
    expect(await blobs.check(content, { quick: true })).toBe('missing')
    await store(blobs, bytesOf('hello'))
    expect(await blobs.check(content, { quick: false })).toBe('whole')
  })

  test('bytes are not staged where they would leave less free space than the floor', {
    tags: ['slow'],
  }, async () => {
    const full = await bench.reopen({ freeFloorBytes: 2 ** 60 })
    await expect(full.stage(0)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await full.availability()).toBe('full')
    await expect(blobs.stage(2 ** 60)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await blobs.availability()).toBe('available')
  })

  test('bytes have no other address', { tags: ['slow'] }, async () => {
    const [long, foreign] = [`${'a'.repeat(64)}0`, `${'a'.repeat(63)}/`]
    for (const sha256 of ['../../etc/passwd', '', 'A'.repeat(64), foreign, long]) {
      const read = blobs.read({ sha256, size: 1 })
      await expect(read, sha256).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    }
  })
})

describe('files in the root', () => {
  let bench: FileBench
  beforeEach(async () => {
    bench = await fileBench()
  })
  afterEach(() => bench.close())

  test('damaged files are replaced when the same bytes are stored again', async () => {
    const content = await store(bench.blobs, bytesOf('hello'))
    bench.alter(content.sha256, bytesOf('xxxxx'))
    await store(bench.blobs, bytesOf('hello'))
    expect(new Uint8Array(await bench.blobs.read(content))).toEqual(bytesOf('hello'))
  })

  test.each(['hell', 'hello!', ''])(
    'files in the root that have another length are not sent: %j',
    { tags: ['slow'] },
    async (altered) => {
      const content = await store(bench.blobs, bytesOf('hello'))
      bench.alter(content.sha256, bytesOf(altered))
      const opened = bench.blobs.open(content, { start: 0, end: 5 })
      await expect(opened).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    },
  )

  test('files in the root belong to their owner alone', async () => {
    const { sha256 } = await store(bench.blobs, bytesOf('x'))
    const path = join(bench.directory, 'sha256', sha256.slice(0, 2), sha256.slice(2))
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
})

describe('an S3-compatible store', () => {
  let bench: Bench
  let blobs: BlobStore
  beforeEach(async () => {
    bench = await s3Bench()
    blobs = bench.blobs
  })
  afterEach(() => bench.close())

  test('an S3-compatible store gets long files in parts, and no upload is left open', async () => {
    await store(blobs, new Uint8Array(20 * 1024 * 1024))
    expect(s3.openUploads.size).toBe(0)
    expect([...s3.objects.values()].map(({ length }) => length)).toEqual([20 * 1024 * 1024])
  })

  test.each(['error', 'denied', 'silent'] as const)(
    'an S3-compatible store that fails (%s) is unavailable, loses nothing, and recovers',
    { tags: ['slow'] },
    async (failure) => {
      const content = await store(blobs, bytesOf('before'))
      s3.failure = failure
      // It waits less long than the one above, which must not be too impatient for a busy machine.
      const failing = await bench.reopen({ requestMillis: 100 })
      const unavailable = { code: 'UNAVAILABLE' }
      await Promise.all([
        expect(store(failing, bytesOf('during'))).rejects.toMatchObject(unavailable),
        expect(failing.read(content)).rejects.toMatchObject(unavailable),
        expect(failing.open(content, { start: 0, end: 1 })).rejects.toMatchObject(unavailable),
        expect(failing.check(content, { quick: true })).rejects.toMatchObject(unavailable),
        expect(failing.availability()).resolves.toBe('unavailable'),
      ])
      expect(bench.staged()).toEqual([])
      s3.failure = null
      for (const each of [blobs, failing]) {
        await expect.poll(() => each.availability()).toBe('available')
      }
      expect(await listed(blobs)).toEqual([content.sha256])
      expect(new Uint8Array(await blobs.read(content))).toEqual(bytesOf('before'))
      await store(blobs, bytesOf('during'))
    },
  )

  test.each(['short', 'long'] as const)(
    'an S3-compatible store that sends another length (%s) than it has is not believed',
    async (failure) => {
      const content = await store(blobs, bytesOf('0123456789'))
      s3.failure = failure
      const whole = blobs.open(content, { start: 0, end: 10 })
      await expect(whole.then((body) => new Response(body).text())).rejects.toThrow()
      await expect(blobs.read(content)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    },
  )

  test('a read fails at its deadline if the store stalls while it sends bytes', {
    tags: ['slow'],
  }, async () => {
    const content = await store(blobs, new Uint8Array(2 ** 20))
    const failing = await bench.reopen({ requestMillis: 1_000 })
    s3.failure = 'stalled'
    const unavailable = { code: 'UNAVAILABLE' }
    const body = await failing.open(content, { start: 0, end: content.size })
    await Promise.all([
      expect(failing.check(content, { quick: false })).rejects.toMatchObject(unavailable),
      expect(new Response(body).bytes()).rejects.toMatchObject(unavailable),
    ])
    await expect.poll(() => s3.stalled).toBe(0)
  })

  test('an S3-compatible store that is gone is unavailable', async () => {
    const content = await store(blobs, bytesOf('x'))
    await s3.stop()
    await expect(blobs.read(content)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await expect(store(blobs, bytesOf('y'))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })
})

test('a store that is filled has its bytes for the server that opens it later', {
  tags: ['slow'],
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'blobs-'))
  try {
    const filled = await FileBlobs.open({ directory, freeFloorBytes: 0, isFilled: true })
    const content = await store(filled, bytesOf('filled'))
    await filled.syncAll()
    const blobs = await FileBlobs.open({ directory, freeFloorBytes: 0 })
    expect(await listed(blobs)).toEqual([content.sha256])
    expect(await sentBy(blobs, content, 0, content.size)).toBe('filled')
  } finally {
    rmSync(directory, { recursive: true })
  }
})
