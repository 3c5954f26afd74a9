/** Quotas of buckets under simultaneous requests of S3 clients. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openS3Api, type S3Api, type StorageKeys } from '../../../../testing/files/s3-apis.ts'
import { signS3 } from '../../../../testing/files/s3-signers.ts'

const QUOTA = 1_000
const Key = 'parted'

let s3: S3Api
let client: S3Api['client']
let keys: StorageKeys
let Bucket = ''
let count = 0
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())
beforeEach(() => {
  client?.destroy()
  Bucket = `quota-${++count}`
  s3.makeBucket(Bucket, { quotaBytes: BigInt(QUOTA) })
  keys = s3.issueKey('write', Bucket)
  client = s3.clientOf(keys)
})

/** Returns the name of the failure; null for a success. */
const failureOf = (sent: Promise<unknown>): Promise<string | null> =>
  sent.then(
    () => null,
    (error: Error) => error.name,
  )
const put = (name: string, bytes: number) =>
  failureOf(client.send(new PutObjectCommand({ Bucket, Key: name, Body: Buffer.alloc(bytes) })))
const begin = async (): Promise<string> => {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  return UploadId!
}
const upload = (UploadId: string, PartNumber: number, bytes: number) => {
  const Body = Buffer.alloc(bytes, PartNumber)
  return client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }))
}

test('simultaneous parts are stored as long as the quota has room', async () => {
  const uploads = [await begin(), await begin()]
  const outcomes = await Promise.all(
    Array.from({ length: 12 }, (_, i) => failureOf(upload(uploads[i % 2]!, i + 1, 300))),
  )
  expect(outcomes.filter((each) => each === null)).toHaveLength(3)
  expect(outcomes.filter((each) => each === 'EntityTooLarge')).toHaveLength(9)
  expect(s3.server.staged()).toEqual([])
})

test('objects and parts share the quota, and a completion takes no more of it', async () => {
  const UploadId = await begin()
  const { ETag } = await upload(UploadId, 1, 900)
  expect(await put('beside', 101)).toBe('EntityTooLarge')
  // A part in place of another takes the space of that one.
  expect(await failureOf(upload(UploadId, 1, 900))).toBeNull()
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
  const completing = { Bucket, Key, UploadId, MultipartUpload }
  const { ETag: replaced } = await upload(UploadId, 1, 800)
  MultipartUpload.Parts = [{ PartNumber: 1, ETag: replaced }]
  expect(await failureOf(client.send(new CompleteMultipartUploadCommand(completing)))).toBeNull()
  expect(await put('beside', 201)).toBe('EntityTooLarge')
  expect(await put('beside', 200)).toBeNull()
})

test('an aborted upload gives its space back, and a copied part takes some', async () => {
  expect(await put('source', 400)).toBeNull()
  const UploadId = await begin()
  const copy = (PartNumber: number) => {
    const address = { Bucket, Key, UploadId, PartNumber }
    return failureOf(
      client.send(new UploadPartCopyCommand({ ...address, CopySource: `${Bucket}/source` })),
    )
  }
  expect([await copy(1), await copy(2)]).toEqual([null, 'EntityTooLarge'])
  await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
  expect(await put('after', 600)).toBeNull()
})

test('space is reserved before the bytes arrive, until the connection ends', async () => {
  const url = `${s3.endpoint}/${Bucket}/slow`
  const { headers } = signS3(keys, { method: 'PUT', url, payload: 'UNSIGNED-PAYLOAD' })
  const lines = Object.entries({ ...headers, 'content-length': '900' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const socket = s3.server.socket()
  const { host, pathname } = new URL(url)
  socket.write(`PUT ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}\r\n`)
  await expect.poll(() => s3.server.staged().length, { timeout: 60_000 }).toBe(1)
  expect(await put('quick', 101)).toBe('EntityTooLarge')
  expect(await put('quick', 100)).toBeNull()
  socket.destroy()
  await expect.poll(() => put('quick', 1_000), { timeout: 60_000 }).toBeNull()
})
