/** Objects, lists and copies of the S3-compatible API, by the SDK of AWS. */
import { Readable } from 'node:stream'
import {
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { checksumStream } from '../../../system/checksums.ts'
import { sha256Hex } from '../../../system/digests.ts'

const Bucket = 'default'

let s3: S3Api
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())

const put = (Key: string, Body: string | Uint8Array, more = {}) =>
  s3.client.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))
const get = (Key: string, more = {}) =>
  s3.client.send(new GetObjectCommand({ Bucket, Key, ...more }))
const textOf = async (Key: string, more = {}) => (await get(Key, more)).Body!.transformToString()
const md5Of = (...parts: readonly (string | Uint8Array)[]): string => {
  const md5 = checksumStream('md5')
  for (const part of parts) md5.update(typeof part === 'string' ? Buffer.from(part) : part)
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

test('an object has its MD5 as entity tag, its type, metadata and headers', async () => {
  const metadata = { Metadata: { colour: 'blue', 'a-b': 'x  y' }, ContentType: 'text/plain' }
  const headers = { CacheControl: 'max-age=5', ContentEncoding: 'identity' }
  const stored = await put('plain', 'hello', { ...metadata, ...headers })
  expect(stored.ETag).toBe(`"${md5Of('hello')}"`)
  const found = await get('plain')
  expect(found).toMatchObject({ ...metadata, ...headers, ContentLength: 5, ETag: stored.ETag })
  expect(await found.Body!.transformToString()).toBe('hello')
  const head = await s3.client.send(new HeadObjectCommand({ Bucket, Key: 'plain' }))
  expect(head).toMatchObject({ ContentLength: 5, ETag: stored.ETag, ContentType: 'text/plain' })
  expect(head.LastModified!.getTime()).toBeGreaterThan(Date.now() - 60_000)
})

test.each([
  ['with reserved characters', 'a b+c&d=e?f#g%2f%'],
  ['beyond ASCII', 'ü/€/😀'],
  ['with empty segments', '/leading//double/'],
  ['with quotes and brackets', 'quotes\'"<>&\\`{|}~^'],
  ['of 1,024 characters', 'x'.repeat(1_024)],
  ['of 1,024 bytes', 'é'.repeat(512)],
  ['with dots', 'dots/...a/..b'],
  ['with the name of a prototype', '__proto__'],
])('a key %s is stored, listed and deleted unchanged', async (_, key) => {
  await put(key, key)
  expect(await textOf(key)).toBe(key)
  const listed = await s3.client.send(new ListObjectsV2Command({ Bucket, Prefix: key }))
  expect(listed.Contents?.map(({ Key }) => Key)).toEqual([key])
  const encoded = new ListObjectsV2Command({ Bucket, Prefix: key, EncodingType: 'url' })
  const [first] = (await s3.client.send(encoded)).Contents!
  expect(decodeURIComponent(first!.Key!)).toBe(key)
  await s3.client.send(new DeleteObjectCommand({ Bucket, Key: key }))
  expect(await nameOf(get(key))).toBe('NoSuchKey')
})

test('a key over 1,024 bytes is rejected', async () => {
  expect(await nameOf(put('x'.repeat(1_025), 'x'))).toBe('KeyTooLongError')
  expect(await nameOf(put('é'.repeat(513), 'x'))).toBe('KeyTooLongError')
})

test.each([
  ['bytes=1-3', 'bcd', 'bytes 1-3/6'],
  ['bytes=4-', 'ef', 'bytes 4-5/6'],
  ['bytes=-2', 'ef', 'bytes 4-5/6'],
  ['bytes=5-2', 'abcdef', undefined],
])('the range %s is sent', async (Range, expected, ContentRange) => {
  await put('ranged', 'abcdef')
  const found = await get('ranged', { Range })
  expect(found.ContentRange).toBe(ContentRange)
  expect(await found.Body!.transformToString()).toBe(expected)
})

test('a range behind the end is InvalidRange', async () => {
  await put('ranged', 'abcdef')
  expect(await nameOf(get('ranged', { Range: 'bytes=6-' }))).toBe('InvalidRange')
})

test('conditions of reads are those of RFC 9110', async () => {
  const { ETag } = await put('conditional', 'x')
  const status = async (more: object) => {
    try {
      return (await get('conditional', more)).$metadata.httpStatusCode
    } catch (error) {
      return (error as { $metadata: { httpStatusCode: number } }).$metadata.httpStatusCode
    }
  }
  const [past, future] = [new Date(0), new Date(Date.now() + 3_600_000)]
  expect(await status({ IfMatch: ETag })).toBe(200)
  expect(await status({ IfMatch: '"other"' })).toBe(412)
  expect(await status({ IfNoneMatch: ETag })).toBe(304)
  expect(await status({ IfNoneMatch: '"other"' })).toBe(200)
  expect(await status({ IfModifiedSince: past })).toBe(200)
  expect(await status({ IfModifiedSince: future })).toBe(304)
  expect(await status({ IfUnmodifiedSince: past })).toBe(412)
  expect(await status({ IfUnmodifiedSince: future })).toBe(200)
})

test('exactly one of 20 simultaneous writes with If-None-Match stores an object', async () => {
  const writes = Array.from({ length: 20 }, (_, i) => put('once', `${i}`, { IfNoneMatch: '*' }))
  const names = await Promise.all(writes.map(nameOf))
  expect(names.filter((name) => name === 'no failure')).toHaveLength(1)
  expect(new Set(names)).toEqual(new Set(['no failure', 'PreconditionFailed']))
})

test('a write with If-Match replaces only the object that the client knows', async () => {
  const { ETag } = await put('matched', 'one')
  expect(await nameOf(put('matched', 'two', { IfMatch: '"other"' }))).toBe('PreconditionFailed')
  await put('matched', 'two', { IfMatch: ETag })
  expect(await textOf('matched')).toBe('two')
  expect(await nameOf(put('nothing', 'x', { IfMatch: ETag }))).toBe('NoSuchKey')
})

test('a delete with If-Match removes only the object that the client knows', async () => {
  const { ETag } = await put('kept', 'one')
  const remove = (Key: string, IfMatch: string | undefined, more = {}) =>
    nameOf(s3.client.send(new DeleteObjectCommand({ Bucket, Key, IfMatch, ...more })))
  expect(await remove('kept', '"other"')).toBe('PreconditionFailed')
  expect(await remove('kept', undefined, { IfMatchSize: 3 })).toBe('NotImplemented')
  expect(await textOf('kept')).toBe('one')
  expect(await remove('kept', ETag)).toBe('no failure')
  expect(await remove('kept', ETag)).toBe('NoSuchKey')
  expect(await remove('kept', '*')).toBe('NoSuchKey')
  await put('kept', 'two')
  expect(await remove('kept', '*')).toBe('no failure')
  expect(await nameOf(get('kept'))).toBe('NoSuchKey')
})

test('exactly one of 20 simultaneous deletes with If-Match succeeds', async () => {
  const { ETag } = await put('once', 'x')
  const command = () => new DeleteObjectCommand({ Bucket, Key: 'once', IfMatch: ETag })
  const sent = Array.from({ length: 20 }, () => nameOf(s3.client.send(command())))
  const names = await Promise.all(sent)
  expect(names.filter((name) => name === 'no failure')).toHaveLength(1)
  expect(new Set(names)).toEqual(new Set(['no failure', 'NoSuchKey']))
})

test('a body with another digest is not stored', async () => {
  const wrong = Buffer.from(md5Of('other'), 'hex').toString('base64')
  expect(await nameOf(put('digest', 'x', { ContentMD5: wrong }))).toBe('BadDigest')
  const checksums = ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const
  for (const ChecksumAlgorithm of checksums) {
    const stored = await put(`sum-${ChecksumAlgorithm}`, 'x', { ChecksumAlgorithm })
    expect(stored[`Checksum${ChecksumAlgorithm}`], ChecksumAlgorithm).toBeTruthy()
  }
  expect(await nameOf(put('digest', 'x', { ChecksumCRC32: 'AAAAAA==' }))).toBe('BadDigest')
  expect(await nameOf(get('digest'))).toBe('NoSuchKey')
})

test('a stream is sent in chunks with a trailer', async () => {
  const bytes = new Uint8Array(300_000).map((_, i) => i * 7)
  const Body = Readable.from([bytes.subarray(0, 200_000), bytes.subarray(200_000)])
  const more = { Body, ContentLength: bytes.length }
  await s3.client.send(new PutObjectCommand({ Bucket, Key: 'streamed', ...more }))
  const found = await (await get('streamed')).Body!.transformToByteArray()
  expect(sha256Hex(found)).toBe(sha256Hex(bytes))
})

describe('lists', () => {
  const keys = ['a/1', 'a/2', 'a/b/3', 'b', 'c/4', 'é', 'z/😀', 'z/\uffee']
  let client: S3Api['client']
  beforeAll(async () => {
    s3.makeBucket('listed')
    client = s3.clientOf(s3.issueKey('write', 'listed'))
    for (const Key of keys) {
      await client.send(new PutObjectCommand({ Bucket: 'listed', Key, Body: Key }))
    }
  })
  afterAll(() => client.destroy())
  const list = (more = {}) => client.send(new ListObjectsV2Command({ Bucket: 'listed', ...more }))
  const keysOf = ({ Contents = [] }: Pick<ListObjectsV2CommandOutput, 'Contents'>) =>
    Contents.map(({ Key }) => Key)

  test('keys are in the order of their UTF-8', async () => {
    const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(keysOf(await list())).toEqual(sorted)
  })

  test('a delimiter gives common prefixes', async () => {
    const found = await list({ Delimiter: '/' })
    expect(keysOf(found)).toEqual(['b', 'é'])
    expect(found.CommonPrefixes).toEqual([{ Prefix: 'a/' }, { Prefix: 'c/' }, { Prefix: 'z/' }])
    const below = await list({ Delimiter: '/', Prefix: 'a/' })
    expect(keysOf(below)).toEqual(['a/1', 'a/2'])
    expect(below.CommonPrefixes).toEqual([{ Prefix: 'a/b/' }])
  })

  test.each([1, 2, 3, 5])('pages of %d hold every entry once', async (MaxKeys) => {
    const names: (string | undefined)[] = []
    let ContinuationToken: string | undefined
    do {
      const page = await list({ Delimiter: '/', MaxKeys, ContinuationToken })
      expect(page.KeyCount).toBeLessThanOrEqual(MaxKeys)
      names.push(...keysOf(page), ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix))
      ContinuationToken = page.NextContinuationToken
      expect(page.IsTruncated).toBe(ContinuationToken !== undefined)
    } while (ContinuationToken !== undefined)
    expect(names.sort()).toEqual(['a/', 'b', 'c/', 'z/', 'é'].sort())
  })

  test('pages of version 1 continue after the marker', async () => {
    const names: (string | undefined)[] = []
    let Marker: string | undefined
    do {
      const input = { Bucket: 'listed', Delimiter: '/', MaxKeys: 2, Marker }
      const page = await client.send(new ListObjectsCommand(input))
      names.push(...keysOf(page), ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix))
      Marker = page.NextMarker
    } while (Marker !== undefined)
    expect(names.sort()).toEqual(['a/', 'b', 'c/', 'z/', 'é'].sort())
  })

  test('a list begins after a key and may be empty', async () => {
    expect(keysOf(await list({ StartAfter: 'c/4' }))).toEqual(['z/\uffee', 'z/😀', 'é'])
    expect(await list({ MaxKeys: 0 })).toMatchObject({ KeyCount: 0, IsTruncated: false })
  })

  test('a continuation token of another list is rejected', async () => {
    const { NextContinuationToken: token } = await list({ MaxKeys: 1 })
    const foreign = list({ Prefix: 'a', ContinuationToken: token })
    expect(await nameOf(foreign)).toBe('InvalidArgument')
    expect(await nameOf(list({ ContinuationToken: `${token}A` }))).toBe('InvalidArgument')
  })

  test('a bulk deletion deletes the objects whose conditions hold', async () => {
    const send = async (...Objects: { Key: string; ETag?: string; Size?: number }[]) => {
      const input = { Bucket: 'listed', Delete: { Objects } }
      const { Deleted = [], Errors = [] } = await client.send(new DeleteObjectsCommand(input))
      return [Deleted.map(({ Key }) => Key), Errors.map(({ Key, Code }) => `${Key} ${Code}`)]
    }
    const ETag = `"${md5Of('c/4')}"`
    const failed = ['c/4 PreconditionFailed', 'none NoSuchKey', 'b NotImplemented']
    const other = [
      { Key: 'c/4', ETag: '"other"' },
      { Key: 'none', ETag },
      { Key: 'b', Size: 1 },
    ]
    expect(await send(...other)).toEqual([[], failed])
    expect(keysOf(await list())).toHaveLength(keys.length)
    expect(await send({ Key: 'c/4', ETag }, { Key: 'c/4' })).toEqual([['c/4', 'c/4'], []])
    expect(keysOf(await list({ Prefix: 'c/' }))).toEqual([])
  })

  test('a bulk deletion accepts unknown objects', async () => {
    const Objects = [{ Key: 'a/1' }, { Key: 'unknown' }, { Key: 'b', VersionId: 'other' }]
    const input = { Bucket: 'listed', Delete: { Objects } }
    const found = await client.send(new DeleteObjectsCommand(input))
    expect(found.Deleted).toEqual([{ Key: 'a/1' }, { Key: 'unknown' }])
    expect(found.Errors?.map(({ Key, Code }) => [Key, Code])).toEqual([['b', 'NotImplemented']])
    expect(keysOf(await list({ Prefix: 'a/' }))).toEqual(['a/2', 'a/b/3'])
  })
})

test('a copy has the bytes of its source and keeps or replaces its headers', async () => {
  const { ETag } = await put('source é', 'copied', { Metadata: { from: 'source' } })
  const CopySource = `${Bucket}/${encodeURIComponent('source é')}`
  const copy = (more = {}) =>
    s3.client.send(new CopyObjectCommand({ Bucket, Key: 'copy', CopySource, ...more }))
  expect((await copy()).CopyObjectResult?.ETag).toBe(ETag)
  expect(await get('copy')).toMatchObject({ Metadata: { from: 'source' }, ETag })
  await copy({ MetadataDirective: 'REPLACE', Metadata: { to: 'copy' } })
  expect((await get('copy')).Metadata).toEqual({ to: 'copy' })
  expect(await nameOf(copy({ CopySource: 'default/none' }))).toBe('NoSuchKey')
  expect(await nameOf(copy({ CopySource: 'other/none' }))).toBe('AccessDenied')
  expect(await nameOf(copy({ CopySourceIfMatch: '"other"' }))).toBe('PreconditionFailed')
})

test('a key sees only its bucket, and a read-only key cannot write', async () => {
  const reader = s3.clientOf(s3.issueKey('read'))
  const found = await reader.send(new ListBucketsCommand({}))
  expect(found.Buckets?.map(({ Name }) => Name)).toEqual(['default'])
  await reader.send(new HeadBucketCommand({ Bucket }))
  await reader.send(new GetBucketLocationCommand({ Bucket }))
  const write = new PutObjectCommand({ Bucket, Key: 'x', Body: 'x' })
  expect(await nameOf(reader.send(write))).toBe('AccessDenied')
  expect(await nameOf(reader.send(new ListObjectsV2Command({ Bucket: 'foreign' })))).toBe(
    'AccessDenied',
  )
  reader.destroy()
})

test('a bucket takes neither larger objects nor more bytes than it admits', async () => {
  s3.makeBucket('bounded', { quotaBytes: 10n, maximumObjectBytes: 6n })
  const client = s3.clientOf(s3.issueKey('write', 'bounded'))
  const store = (Key: string, Body: string) =>
    nameOf(client.send(new PutObjectCommand({ Bucket: 'bounded', Key, Body })))
  expect(await store('a', '1234567')).toBe('EntityTooLarge')
  expect(await store('a', '123456')).toBe('no failure')
  expect(await store('b', '12345')).toBe('EntityTooLarge')
  expect(await store('b', '1234')).toBe('no failure')
  const input = { Bucket: 'bounded', Key: 'parts' }
  await client.send(new DeleteObjectsCommand({ ...input, Delete: { Objects: [{ Key: 'a' }] } }))
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(input))
  const upload = (PartNumber: number, Body: string) =>
    nameOf(client.send(new UploadPartCommand({ ...input, UploadId, PartNumber, Body })))
  expect(await upload(1, '1234')).toBe('no failure')
  // Four bytes are in the bucket and four in the first part: three more are one too many.
  expect(await upload(2, '123')).toBe('EntityTooLarge')
  expect(await upload(2, '12')).toBe('no failure')
  client.destroy()
})

test('transfers of objects are counted and measured, other requests are not', async () => {
  const figures = () => {
    const { counters, histograms } = s3.server.gateway.metrics.collect()
    const { uploadRequestDurationMicros: up, downloadRequestDurationMicros: down } = histograms
    return [counters.uploadedBytes, counters.downloadedBytes, up.count, down.count]
  }
  const before = figures()
  await put('counted', '12345')
  await textOf('counted', { Range: 'bytes=1-2' })
  await s3.client.send(new HeadObjectCommand({ Bucket, Key: 'counted' }))
  await s3.client.send(new ListObjectsV2Command({ Bucket }))
  await s3.client.send(new DeleteObjectCommand({ Bucket, Key: 'counted' }))
  expect(figures().map((figure, i) => figure - before[i]!)).toEqual([5, 2, 1, 2])
})
