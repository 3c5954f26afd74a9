/** The S3-compatible API at the root of its own host, for clients whose endpoint has no path. */
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
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { signS3 } from '../../../../testing/files/s3-signers.ts'
import { ORIGIN } from '../../../../testing/gateways.ts'

const Bucket = 'default'

let s3: S3Api
let origin: string
let client: S3Api['client']
beforeAll(async () => {
  s3 = await openS3Api({ s3Host: '127.0.0.1' })
  origin = s3.server.origin
  client = s3.clientAt(origin)
})
afterAll(async () => {
  client?.destroy()
  await s3?.close()
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

test('the S3 host also serves the path `/v1/s3`, and other hosts serve nothing else', async () => {
  await s3.client.send(new PutObjectCommand({ Bucket, Key: 'both', Body: 'both' }))
  const at = async (url: string, host: string) => {
    const { headers } = signS3(s3.keys, { method: 'GET', url, headers: { host } })
    const reply = await fetch(url, { headers: { ...headers, host } })
    return [reply.status, reply.headers.get('content-type')]
  }
  const served = [200, 'application/octet-stream']
  expect(await at(`${origin}/v1/s3/default/both`, '127.0.0.1')).toEqual(served)
  expect(await at(`${origin}/default/both`, '127.0.0.1:8443')).toEqual(served)
  expect(await at(`${origin}/v1/s3/default/both`, 'api.example')).toEqual(served)
  expect((await at(`${origin}/default/both`, 'api.example'))[0]).toBe(404)
})

test('the S3 host serves only the S3-compatible API, also to pages of listed origins', async () => {
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
