/** Multipart uploads to the S3-compatible API, by the SDK of AWS. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { Random } from '../../../../testing/fuzzing/fuzz.ts'
import { SEED } from '../../../../testing/seeds.ts'
import { isContentReferenced } from '../../../engine/files/file-documents.ts'
import { removeAbandoned } from '../../../product/files/multipart.ts'
import { verifyStorage } from '../../../product/files/verify.ts'
import { checksumStream } from '../../../system/checksums.ts'
import { sha256Hex } from '../../../system/digests.ts'
import { PARTS_MAX } from '../../../value/files/files.ts'

const Bucket = 'default'
const MIB = 1024 * 1024
/** All that an upload may have, or a few. */
const PARTS = process.env.SVC_TEST_LONG === '1' ? PARTS_MAX : 40
const random = new Random(SEED)

let s3: S3Api
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())

const put = (Key: string, Body: string | Uint8Array) =>
  s3.client.send(new PutObjectCommand({ Bucket, Key, Body }))
const get = (Key: string, more = {}) =>
  s3.client.send(new GetObjectCommand({ Bucket, Key, ...more }))
const textOf = async (Key: string) => (await get(Key)).Body!.transformToString()
const md5Of = (bytes: Uint8Array): string => {
  const md5 = checksumStream('md5')
  md5.update(bytes)
  return md5.digest().toHex()
}
const nameOf = async (sent: Promise<unknown>): Promise<string> => {
  try {
    await sent
    return 'no failure'
  } catch (error) {
    return (error as Error).name
  }
}

const first = new Uint8Array(5 * MIB).fill(1)
const begin = async (Key: string) => {
  const begun = await s3.client.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  return begun.UploadId!
}
const upload = (Key: string, UploadId: string, PartNumber: number, Body: Uint8Array) =>
  s3.client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }))
const complete = (Key: string, UploadId: string, Parts: object[]) =>
  s3.client.send(
    new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }),
  )

test('parts in any order become one object, whose entity tag has their number', {
  tags: ['slow'],
}, async () => {
  const id = await begin('joined')
  const tail = await upload('joined', id, 7, Buffer.from('old'))
  const { ETag: two } = await upload('joined', id, 7, Buffer.from('tail'))
  const { ETag: one } = await upload('joined', id, 2, first)
  const listed = await s3.client.send(new ListPartsCommand({ Bucket, Key: 'joined', UploadId: id }))
  expect(listed.Parts?.map(({ PartNumber, Size }) => [PartNumber, Size])).toEqual([
    [2, first.length],
    [7, 4],
  ])
  const parts = [
    { PartNumber: 2, ETag: one },
    { PartNumber: 7, ETag: two },
  ]
  const stale = [parts[0]!, { PartNumber: 7, ETag: tail.ETag }]
  expect(await nameOf(complete('joined', id, stale))).toBe('InvalidPart')
  expect(await nameOf(complete('joined', id, [...parts].reverse()))).toBe('InvalidPartOrder')
  const done = await complete('joined', id, parts)
  const tags = Buffer.concat(
    [first, Buffer.from('tail')].map((part) => Buffer.from(md5Of(part), 'hex')),
  )
  expect(done.ETag).toBe(`"${md5Of(tags)}-2"`)
  const found = await (await get('joined')).Body!.transformToByteArray()
  expect(sha256Hex(found)).toBe(sha256Hex(first, 'tail'))
  // A repeat, whose answer was lost, succeeds; other requests find no upload.
  expect((await complete('joined', id, parts)).ETag).toBe(done.ETag)
  expect(await nameOf(upload('joined', id, 1, first))).toBe('NoSuchUpload')
})

test('an unknown upload is not found, even with an invalid completion', async () => {
  const id = await begin('finished')
  const { ETag } = await upload('finished', id, 1, Buffer.from('x'))
  const parts = [{ PartNumber: 1, ETag }]
  await complete('finished', id, parts)
  const unknown = await begin('another')
  for (const UploadId of [unknown, 's3u_01JZ0000000000000000000000', 'none']) {
    // The object has the entity tag of these parts.
    expect(await nameOf(complete('finished', UploadId, parts))).toBe('NoSuchUpload')
    expect(await nameOf(complete('finished', UploadId, [{ PartNumber: 1, ETag: 'x' }]))).toBe(
      'NoSuchUpload',
    )
    expect(await nameOf(complete('finished', UploadId, []))).toBe('NoSuchUpload')
  }
})

test(`${PARTS} parts in any order are listed in theirs (SVC_SEED=${SEED})`, {
  tags: ['slow'],
  timeout: 600_000,
}, async () => {
  const id = await begin('many')
  const order = Array.from({ length: PARTS }, (_, i) => ({
    number: i + 1,
    at: random.below(2 ** 31),
  }))
  order.sort((a, b) => a.at - b.at)
  const tags = new Map<number, string>()
  const sender = async () => {
    for (let next = order.pop(); next !== undefined; next = order.pop()) {
      const { ETag } = await upload('many', id, next.number, Buffer.from(`part ${next.number}`))
      tags.set(next.number, ETag!)
    }
  }
  await Promise.all(Array.from({ length: 8 }, sender))
  const input = { Bucket, Key: 'many', UploadId: id }
  const parts: { PartNumber: number | undefined; ETag: string | undefined }[] = []
  let PartNumberMarker: string | undefined
  do {
    const command = new ListPartsCommand({ ...input, PartNumberMarker, MaxParts: PARTS / 20 + 7 })
    const page = await s3.client.send(command)
    parts.push(...page.Parts!.map(({ PartNumber, ETag }) => ({ PartNumber, ETag })))
    PartNumberMarker = page.IsTruncated === true ? page.NextPartNumberMarker : undefined
  } while (PartNumberMarker !== undefined)
  const sorted = [...tags].sort(([a], [b]) => a - b)
  expect(parts).toEqual(sorted.map(([PartNumber, ETag]) => ({ PartNumber, ETag })))
  expect(await nameOf(complete('many', id, parts))).toBe('EntityTooSmall')
  expect(await nameOf(complete('many', id, parts.toReversed()))).toBe('InvalidPartOrder')
  await s3.client.send(new AbortMultipartUploadCommand(input))
  expect(await nameOf(s3.client.send(new ListPartsCommand(input)))).toBe('NoSuchUpload')
  const { files } = s3.server.gateway
  const bytes = `part ${PARTS}`
  expect(await files.documents.read((tx) => isContentReferenced(tx, sha256Hex(bytes)))).toBe(false)
})

test('a small part before the last one is rejected', async () => {
  const id = await begin('small')
  const parts = []
  for (const PartNumber of [1, 2]) {
    const { ETag } = await upload('small', id, PartNumber, Buffer.from('x'))
    parts.push({ PartNumber, ETag })
  }
  expect(await nameOf(complete('small', id, parts))).toBe('EntityTooSmall')
  expect(await nameOf(complete('small', id, [{ PartNumber: 3, ETag: parts[0]!.ETag }]))).toBe(
    'InvalidPart',
  )
  expect(await nameOf(upload('small', id, 10_001, first))).toBe('InvalidArgument')
})

test('a part copies a range of an object', async () => {
  await put('copied-from', 'abcdef')
  const id = await begin('part-copy')
  const copied = await s3.client.send(
    new UploadPartCopyCommand({
      Bucket,
      Key: 'part-copy',
      UploadId: id,
      PartNumber: 1,
      CopySource: 'default/copied-from',
      CopySourceRange: 'bytes=1-3',
    }),
  )
  await complete('part-copy', id, [{ PartNumber: 1, ETag: copied.CopyPartResult!.ETag }])
  expect(await textOf('part-copy')).toBe('bcd')
})

test('an aborted upload is gone, with the bytes of its parts', async () => {
  const id = await begin('aborted')
  await upload('aborted', id, 1, Buffer.from('bytes of an aborted part'))
  const list = () => s3.client.send(new ListMultipartUploadsCommand({ Bucket }))
  expect((await list()).Uploads?.map(({ UploadId }) => UploadId)).toContain(id)
  const { files } = s3.server.gateway
  const sha256 = sha256Hex('bytes of an aborted part')
  const isReferenced = () => files.documents.read((tx) => isContentReferenced(tx, sha256))
  expect(await isReferenced()).toBe(true)
  const { orphaned, lost } = await verifyStorage(files, { repair: false })
  expect([orphaned.includes(sha256), lost]).toEqual([false, []])
  const input = { Bucket, Key: 'aborted', UploadId: id }
  await s3.client.send(new AbortMultipartUploadCommand(input))
  expect((await list()).Uploads?.map(({ UploadId }) => UploadId)).not.toContain(id)
  expect(await nameOf(s3.client.send(new ListPartsCommand(input)))).toBe('NoSuchUpload')
  expect(await isReferenced()).toBe(false)
})

test('an upload that is not finished within a week is removed', async () => {
  const id = await begin('abandoned')
  await upload('abandoned', id, 1, Buffer.from('x'))
  const { files } = s3.server.gateway
  const later = files.system.nowMicros() + 8n * 86_400_000_000n
  const system = { ...files.system, nowMicros: () => later }
  await removeAbandoned({ ...files, system }, () => false)
  const input = { Bucket, Key: 'abandoned', UploadId: id }
  expect(await nameOf(s3.client.send(new ListPartsCommand(input)))).toBe('NoSuchUpload')
})

describe('an object of parts', () => {
  const read = async (PartNumber: number, more = {}) => {
    const found = await get('parted', { PartNumber, ...more })
    const { ContentRange, PartsCount, $metadata } = found
    const sha256 = sha256Hex(await found.Body!.transformToByteArray())
    return { status: $metadata.httpStatusCode, sha256, ContentRange, PartsCount }
  }
  beforeAll(async () => {
    const id = await begin('parted')
    // Clients choose numbers with gaps; they read parts by their positions.
    const Parts = []
    for (const [PartNumber, bytes] of [
      [3, first],
      [5, first],
      [9, Buffer.from('tail')],
    ] as const) {
      const { ETag } = await upload('parted', id, PartNumber, bytes)
      Parts.push({ PartNumber, ETag })
    }
    await complete('parted', id, Parts)
  })

  test('an object of parts is read part by part', async () => {
    const size = 2 * first.length + 4
    const one = await read(1)
    const ContentRange = `bytes 0-${first.length - 1}/${size}`
    expect(one).toEqual({ status: 206, sha256: sha256Hex(first), ContentRange, PartsCount: 3 })
    const last = await read(3)
    expect(last.sha256).toBe(sha256Hex('tail'))
    expect(last.ContentRange).toBe(`bytes ${size - 4}-${size - 1}/${size}`)
    const command = new HeadObjectCommand({ Bucket, Key: 'parted', PartNumber: 2 })
    const head = await s3.client.send(command)
    expect(head).toMatchObject({ ContentLength: first.length, PartsCount: 3 })
    expect((await get('parted')).PartsCount).toBeUndefined()
  })

  test('a part beyond those of the object is rejected', async () => {
    expect(await nameOf(read(4))).toBe('InvalidPartNumber')
    expect(await nameOf(read(0))).toBe('InvalidArgument')
    expect(await nameOf(read(10_001))).toBe('InvalidArgument')
    expect(await nameOf(read(1, { Range: 'bytes=0-1' }))).toBe('InvalidRequest')
    expect(await nameOf(read(1, { IfMatch: '"other"' }))).toBe('PreconditionFailed')
  })

  test('an object is copied with its parts, and an object without parts is one part', async () => {
    const copy = new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/parted` })
    await s3.client.send(copy)
    expect((await get('copy', { PartNumber: 3 })).PartsCount).toBe(3)
    await put('whole', 'whole')
    const whole = await get('whole', { PartNumber: 1 })
    expect([whole.$metadata.httpStatusCode, whole.ContentRange]).toEqual([206, 'bytes 0-4/5'])
    expect(whole.PartsCount).toBeUndefined()
    expect(await nameOf(get('whole', { PartNumber: 2 }))).toBe('InvalidPartNumber')
    await put('empty', '')
    expect((await get('empty', { PartNumber: 1 })).$metadata.httpStatusCode).toBe(200)
  })
})

describe('lists of uploads', () => {
  const keys = ['a/1', 'a/1', 'a/b/2', 'b', 'c/3', 'é/4', 'é/5']
  const input = { Bucket: 'uploads' }
  let client: S3Api['client']
  beforeAll(async () => {
    s3.makeBucket('uploads')
    client = s3.clientOf(s3.issueKey('write', 'uploads'))
    for (const Key of keys) await client.send(new CreateMultipartUploadCommand({ ...input, Key }))
  })
  afterAll(() => client.destroy())

  /** Reads all pages, and returns the names of uploads and common prefixes. */
  const list = async (more: Partial<ListMultipartUploadsCommandInput>) => {
    const uploads: (string | undefined)[] = []
    const prefixes: (string | undefined)[] = []
    let [KeyMarker, UploadIdMarker] = [more.KeyMarker, undefined as string | undefined]
    for (;;) {
      const markers = { KeyMarker, UploadIdMarker }
      const command = new ListMultipartUploadsCommand({ ...input, ...more, ...markers })
      const { Uploads = [], CommonPrefixes = [], ...page } = await client.send(command)
      expect(Uploads.length + CommonPrefixes.length).toBeLessThanOrEqual(more.MaxUploads ?? 1_000)
      uploads.push(...Uploads.map(({ Key }) => Key))
      prefixes.push(...CommonPrefixes.map(({ Prefix }) => Prefix))
      if (page.IsTruncated !== true) return { uploads, prefixes }
      ;[KeyMarker, UploadIdMarker] = [page.NextKeyMarker, page.NextUploadIdMarker]
    }
  }

  test.each([1, 2, 3, 1_000])('pages of %d hold every upload once', async (MaxUploads) => {
    expect(await list({ MaxUploads })).toEqual({ uploads: keys, prefixes: [] })
  })

  test.each([1, 2, 3, 1_000])(
    'pages of %d hold every common prefix once where there is a delimiter',
    async (MaxUploads) => {
      const found = await list({ Delimiter: '/', MaxUploads })
      expect(found).toEqual({ uploads: ['b'], prefixes: ['a/', 'c/', 'é/'] })
    },
  )

  test('a delimiter counts only after the prefix', async () => {
    const below = await list({ Delimiter: '/', Prefix: 'a/' })
    expect(below).toEqual({ uploads: ['a/1', 'a/1'], prefixes: ['a/b/'] })
    const split = await list({ Delimiter: '/', KeyMarker: 'é/4' })
    expect(split).toEqual({ uploads: [], prefixes: ['é/'] })
    const encoded = await list({ Delimiter: '/', Prefix: 'é', EncodingType: 'url' })
    expect(encoded.prefixes).toEqual(['%C3%A9/'])
  })
})
