/** The S3 door at the root of a host of its own, for clients that allow no path in an endpoint. */
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openS3Door, type S3Door } from '../../../../build/testing/files/s3-doors.ts'
import { signS3 } from '../../../../build/testing/files/s3-signers.ts'
import { ORIGIN } from '../../../../build/testing/gateways.ts'

const Bucket = 'default'

let door: S3Door
let origin: string
let client: S3Door['client']
beforeAll(async () => {
  door = await openS3Door({ s3Host: '127.0.0.1' })
  origin = door.server.origin
  client = door.clientAt(origin)
})
afterAll(async () => {
  client?.destroy()
  await door?.close()
})

test('clients store, list and read objects at the root of the host', async () => {
  const Key = 'v1/s3 é'
  await client.send(new PutObjectCommand({ Bucket, Key, Body: 'at the root' }))
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
  expect(Contents?.map((each) => each.Key)).toEqual([Key])
  const head = await client.send(new HeadObjectCommand({ Bucket, Key }))
  expect(head.ContentLength).toBe(11)
  const read = await client.send(new GetObjectCommand({ Bucket, Key }))
  expect(await read.Body!.transformToString()).toBe('at the root')
  const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key }))
  expect(await (await fetch(url)).text()).toBe('at the root')
  const upload = { Bucket, Key: 'parted' }
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(upload))
  const part = { ...upload, UploadId, PartNumber: 1, Body: Buffer.from('part') }
  const { ETag } = await client.send(new UploadPartCommand(part))
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
  const done = { ...upload, UploadId, MultipartUpload }
  expect((await client.send(new CompleteMultipartUploadCommand(done))).Key).toBe('parted')
})

test('the host of the door has its path too, and other hosts have nothing else', async () => {
  await door.client.send(new PutObjectCommand({ Bucket, Key: 'both', Body: 'both' }))
  const at = async (url: string, host: string) => {
    const { headers } = signS3(door.keys, { method: 'GET', url, headers: { host } })
    const reply = await fetch(url, { headers: { ...headers, host } })
    return [reply.status, reply.headers.get('content-type')]
  }
  const served = [200, 'application/octet-stream']
  expect(await at(`${origin}/v1/s3/default/both`, '127.0.0.1')).toEqual(served)
  expect(await at(`${origin}/default/both`, '127.0.0.1:8443')).toEqual(served)
  expect(await at(`${origin}/v1/s3/default/both`, 'api.example')).toEqual(served)
  expect((await at(`${origin}/default/both`, 'api.example'))[0]).toBe(404)
})

test('the host serves nothing but the door, also to pages of listed origins', async () => {
  for (const [method, path] of [
    ['POST', '/v1/query'],
    ['GET', '/readyz'],
    ['PUT', '/v1/files/uploads/upl_x'],
    ['GET', '/'],
  ] as const) {
    const reply = await fetch(origin + path, { method })
    expect([reply.status, await reply.text()], path).toEqual([
      403,
      expect.stringContaining('<Code>AccessDenied</Code>'),
    ])
  }
  const preflight = await fetch(`${origin}/default/both`, {
    method: 'OPTIONS',
    headers: {
      origin: ORIGIN,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'x-amz-date',
    },
  })
  expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT')
  expect(preflight.headers.get('access-control-allow-headers')).toBe('x-amz-date')
})
