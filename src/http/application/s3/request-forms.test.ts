/** Digests, signatures and metadata that S3 clients send in unusual forms. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { signS3, type Unsigned } from '../../../../testing/files/s3-signers.ts'

let s3: S3Api
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())

const at = (path: string) => `${s3.endpoint}${path}`
const answered = async (reply: Response) => [
  reply.status,
  /<Code>(.*?)<\/Code>/.exec(await reply.text())?.[1],
]
const send = (request: Unsigned) => {
  const { headers } = signS3(s3.keys, request)
  const { method, body, url } = request
  return fetch(url, { method, headers, ...(body !== undefined && { body }) })
}
const put = (key: string): Unsigned => ({ method: 'PUT', url: at(`/default/${key}`), body: 'x' })

test.each(['toString', '__proto__', 'SIGNED'])(
  'a digest of the body that is %s is rejected, also without a body',
  async (payload) => {
    const rejected = [400, 'InvalidArgument']
    expect(await answered(await send({ ...put('rejected'), payload }))).toEqual(rejected)
    const get = { method: 'GET', url: at('/default/signed'), payload }
    expect(await answered(await send(get))).toEqual(rejected)
  },
)

test('an unsupported form of chunks is rejected as NotImplemented', async () => {
  const payload = 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD'
  const headers = { 'x-amz-decoded-content-length': '1' }
  const reply = await send({ ...put('rejected'), payload, headers })
  expect(await answered(reply)).toEqual([501, 'NotImplemented'])
})

test('a form of a browser and an older signature are named in their rejection', async () => {
  const form = new FormData()
  form.set('key', 'x')
  const posted = await fetch(at('/default'), { method: 'POST', body: form })
  expect([posted.status, await posted.text()]).toEqual([501, expect.stringContaining('PUT')])
  for (const request of [
    new Request(at('/default/x'), { headers: { authorization: 'AWS AKID:signature' } }),
    new Request(at('/default/x?AWSAccessKeyId=AKID&Expires=1&Signature=x')),
  ]) {
    const reply = await fetch(request)
    expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining('version 4')])
  }
})

test('empty metadata is kept', async () => {
  const headers = { 'x-amz-meta-a': '', 'x-amz-meta-b': 'b', 'cache-control': '' }
  expect((await send({ ...put('empty-metadata'), headers })).status).toBe(200)
  const found = await send({ method: 'GET', url: at('/default/empty-metadata') })
  expect(found.headers.get('x-amz-meta-a')).toBe('')
  expect(found.headers.get('x-amz-meta-b')).toBe('b')
  expect(found.headers.has('cache-control')).toBe(false)
})
