/** Checksums that S3 clients send: they are verified, kept and returned. */
import {
  ChecksumAlgorithm,
  type ChecksumType,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  GetObjectAttributesCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { signS3 } from '../../../../testing/files/s3-signers.ts'
import { checksumStream } from '../../../system/checksums.ts'

const Bucket = 'default'
const MIB = 1024 * 1024

let s3: S3Api
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())

type Name = 'CRC32' | 'CRC32C' | 'CRC64NVME' | 'SHA1' | 'SHA256'
const bytesOf = (name: Name, ...parts: readonly Uint8Array[]): Uint8Array => {
  const stream = checksumStream(name.toLowerCase() as Lowercase<Name>)
  for (const part of parts) stream.update(part)
  return stream.digest()
}
const base64 = (name: Name, ...parts: readonly Uint8Array[]) => bytesOf(name, ...parts).toBase64()
const failureOf = (sent: Promise<unknown>): Promise<string | null> =>
  sent.then(
    () => null,
    (error: Error) => error.name,
  )
const ALL = ['ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize'] as const
const attributesOf = (Key: string, more = {}) =>
  s3.client.send(
    new GetObjectAttributesCommand({ Bucket, Key, ObjectAttributes: [...ALL], ...more }),
  )

describe.each(Object.values(ChecksumAlgorithm).filter((name) => /^(CRC|SHA(1|256)$)/.test(name)))(
  'the checksum %s of an object',
  (given) => {
    const name = given as Name
    const field = `Checksum${name}` as const
    const Body = Buffer.from(`the body of ${name}`)
    const Key = `object-${name}`
    const value = base64(name, Body)
    beforeAll(async () => {
      await s3.client.send(new PutObjectCommand({ Bucket, Key, Body, ChecksumAlgorithm: name }))
    })

    test('a checksum is returned with a whole object to clients that request it', async () => {
      const requested = { Bucket, Key, ChecksumMode: 'ENABLED' } as const
      const found = await s3.client.send(new GetObjectCommand(requested))
      expect(found).toMatchObject({ [field]: value, ChecksumType: 'FULL_OBJECT' })
      expect(await found.Body!.transformToString()).toBe(String(Body))
      const head = await s3.client.send(new HeadObjectCommand(requested))
      expect(head).toMatchObject({ [field]: value, ChecksumType: 'FULL_OBJECT' })
      const part = await s3.client.send(new GetObjectCommand({ ...requested, Range: 'bytes=0-1' }))
      expect(part[field]).toBeUndefined()
      const copy = { Bucket, Key: `${Key}-copy`, CopySource: `${Bucket}/${Key}` }
      const copied = await s3.client.send(new CopyObjectCommand(copy))
      expect(copied.CopyObjectResult?.[field]).toBe(value)
      const attributes = await attributesOf(`${Key}-copy`)
      expect(attributes.Checksum).toEqual({ [field]: value, ChecksumType: 'FULL_OBJECT' })
    })

    test('a checksum that differs from the received bytes is rejected', async () => {
      const wrong = { Bucket, Key: `${Key}-wrong`, Body, [field]: base64(name, Buffer.from('x')) }
      expect(await failureOf(s3.client.send(new PutObjectCommand(wrong)))).toBe('BadDigest')
      const right = { ...wrong, [field]: value }
      expect(await failureOf(s3.client.send(new PutObjectCommand(right)))).toBeNull()
    })
  },
)

test('a signed URL can request the checksum, and no response has it unrequested', async () => {
  const Key = 'signed'
  await s3.client.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }))
  const value = base64('CRC32', Buffer.from('x'))
  const url = await getSignedUrl(
    s3.client,
    new GetObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }),
  )
  expect((await fetch(url)).headers.get('x-amz-checksum-crc32')).toBe(value)
  const plain = { method: 'GET', url: `${s3.endpoint}/default/signed` }
  const { headers } = await fetch(plain.url, { headers: signS3(s3.keys, plain).headers })
  expect(headers.get('etag')).not.toBeNull()
  expect(headers.has('x-amz-checksum-crc32')).toBe(false)
})

describe('a multipart upload', () => {
  const parts = [Buffer.alloc(5 * MIB, 1), Buffer.from('tail')]
  const send = async (Key: string, name: Name, type?: ChecksumType) => {
    const address = { Bucket, Key }
    const { UploadId, ...begun } = await s3.client.send(
      new CreateMultipartUploadCommand({
        ...address,
        ChecksumAlgorithm: name,
        ...(type !== undefined && { ChecksumType: type }),
      }),
    )
    const upload = { ...address, UploadId }
    const Parts = []
    for (const [i, Body] of parts.entries()) {
      const part = { ...upload, PartNumber: i + 1, Body, ChecksumAlgorithm: name }
      const stored = await s3.client.send(new UploadPartCommand(part))
      const { ETag, [`Checksum${name}` as const]: value } = stored
      Parts.push({ PartNumber: i + 1, ETag, [`Checksum${name}`]: value })
    }
    return { upload, begun, Parts }
  }
  const complete = (upload: object, Parts: object[], more = {}) =>
    s3.client.send(
      new CompleteMultipartUploadCommand({
        ...(upload as { Bucket: string; Key: string; UploadId: string }),
        MultipartUpload: { Parts },
        ...more,
      }),
    )

  test.each<[Name, ChecksumType | undefined, ChecksumType]>([
    ['CRC32', undefined, 'COMPOSITE'],
    ['SHA256', 'COMPOSITE', 'COMPOSITE'],
    ['CRC32C', 'FULL_OBJECT', 'FULL_OBJECT'],
    ['CRC64NVME', undefined, 'FULL_OBJECT'],
  ])(
    'a multipart upload with %s of type %s gets a checksum of type %s',
    { tags: ['slow'] },
    async (name, type, expected) => {
      const { upload, begun, Parts } = await send(`parts-${name}`, name, type)
      expect(begun).toMatchObject({ ChecksumAlgorithm: name, ChecksumType: expected })
      const listed = await s3.client.send(new ListPartsCommand(upload as never))
      expect(listed).toMatchObject({ ChecksumAlgorithm: name, ChecksumType: expected })
      expect(listed.Parts).toMatchObject(Parts)
      const composite = base64(name, ...parts.map((part) => bytesOf(name, part)))
      const value = expected === 'COMPOSITE' ? `${composite}-2` : base64(name, ...parts)
      const field = `Checksum${name}` as const
      const done = await complete(upload, Parts)
      expect(done).toMatchObject({ [field]: value, ChecksumType: expected })
      const again = await complete(upload, Parts)
      expect(again).toMatchObject({ [field]: value, ChecksumType: expected, ETag: done.ETag })
      const attributes = await attributesOf(`parts-${name}`)
      expect(attributes).toMatchObject({
        ETag: done.ETag!.replaceAll('"', ''),
        ObjectSize: 5 * MIB + 4,
        StorageClass: 'STANDARD',
        Checksum: { [field]: value, ChecksumType: expected },
      })
      expect(attributes.ObjectParts).toMatchObject({
        TotalPartsCount: 2,
        IsTruncated: false,
        Parts: [
          { PartNumber: 1, Size: 5 * MIB },
          { PartNumber: 2, Size: 4 },
        ],
      })
    },
  )

  test('a multipart upload is completed only with the stored checksums and size', async () => {
    const { upload, Parts } = await send('checked', 'CRC32')
    const [one, two] = Parts
    const wrong = { ...two, ChecksumCRC32: base64('CRC32', Buffer.from('other')) }
    expect(await failureOf(complete(upload, [one!, wrong]))).toBe('InvalidPart')
    const short = { MpuObjectSize: 5 * MIB }
    expect(await failureOf(complete(upload, Parts, short))).toBe('InvalidRequest')
    const of = (...given: readonly Uint8Array[]) => ({ ChecksumCRC32: base64('CRC32', ...given) })
    expect(await failureOf(complete(upload, Parts, of(parts[0]!)))).toBe('BadDigest')
    const whole = { ...of(...parts), ChecksumType: 'FULL_OBJECT' as const }
    expect(await complete(upload, Parts, whole)).toMatchObject(whole)
  })

  test('a composite checksum at completion may lack the number of parts', async () => {
    const { upload, Parts } = await send('bare', 'CRC32C')
    const ChecksumCRC32C = base64('CRC32C', ...parts.map((part) => bytesOf('CRC32C', part)))
    const done = await complete(upload, Parts, { ChecksumCRC32C })
    expect(done.ChecksumCRC32C).toBe(`${ChecksumCRC32C}-2`)
  })

  test('a multipart upload needs a known algorithm and a type that fits it', async () => {
    const begin = (more: object) =>
      failureOf(
        s3.client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'x', ...more } as never)),
      )
    const rejected = 'InvalidRequest'
    expect(await begin({ ChecksumAlgorithm: 'toString' })).toBe(rejected)
    expect(await begin({ ChecksumAlgorithm: 'SHA1', ChecksumType: 'FULL_OBJECT' })).toBe(rejected)
    expect(await begin({ ChecksumAlgorithm: 'CRC64NVME', ChecksumType: 'COMPOSITE' })).toBe(
      rejected,
    )
  })
})

test('parts of attributes have pages, and unknown attributes are rejected', {
  tags: ['slow'],
}, async () => {
  const page = await attributesOf('parts-CRC32', { MaxParts: 1, PartNumberMarker: '1' })
  expect(page.ObjectParts).toMatchObject({
    PartNumberMarker: '1',
    NextPartNumberMarker: '2',
    IsTruncated: false,
    Parts: [{ PartNumber: 2, Size: 4 }],
  })
  const first = await attributesOf('parts-CRC32', { MaxParts: 1 })
  expect(first.ObjectParts).toMatchObject({ IsTruncated: true, NextPartNumberMarker: '1' })
  const unknown = { ObjectAttributes: ['Owner'] }
  expect(await failureOf(attributesOf('parts-CRC32', unknown))).toBe('InvalidArgument')
  expect(await failureOf(attributesOf('none'))).toBe('NoSuchKey')
})
