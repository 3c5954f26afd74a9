/** Wrong signatures, replays, malformed requests and hostile names at the S3-compatible API. */
import {
  CreateMultipartUploadCommand,
  GetObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { signS3, type Unsigned } from '../../../../testing/files/s3-signers.ts'
import { ORIGIN } from '../../../../testing/gateways.ts'
import { sha256Hex } from '../../../system/digests.ts'
import { applicationLimits } from '../../rate-limits.ts'

let s3: S3Api
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())

const MINUTE = 60_000
const at = (path: string) => `${s3.endpoint}${path}`
const codeIn = (text: string) => /<Code>(.*?)<\/Code>/.exec(text)?.[1] ?? text
const answered = async (reply: Response) => [reply.status, codeIn(await reply.text())]

/** Signs the request, applies the change and sends it. */
const send = async (request: Unsigned, change: Partial<RequestInit & { url: string }> = {}) => {
  const { headers } = signS3(s3.keys, request)
  const { method, body, url } = request
  const init = { method, headers, ...(body !== undefined && { body }), ...change }
  return fetch(change.url ?? url, init as RequestInit)
}
const put = (key: string, body = 'x'): Unsigned => ({
  method: 'PUT',
  url: at(`/default/${key}`),
  body,
})

describe('a signature', () => {
  test('a signature is valid for its own request', async () => {
    expect((await send(put('valid'))).status).toBe(200)
  })

  test('a signature covers body, length, method, path, query and headers', async () => {
    const request = { ...put('replayed', 'body'), headers: { 'x-amz-meta-a': '1' } }
    const { headers } = signS3(s3.keys, request)
    const cases: [RequestInit & { url?: string }, [number, string]][] = [
      [{ body: 'other' }, [400, 'XAmzContentSHA256Mismatch']],
      [{ body: 'bod' }, [400, 'XAmzContentSHA256Mismatch']],
      [{ body: '' }, [400, 'XAmzContentSHA256Mismatch']],
      [{ method: 'POST' }, [403, 'SignatureDoesNotMatch']],
      [{ url: at('/default/other') }, [403, 'SignatureDoesNotMatch']],
      [{ url: at('/default/replayed?acl') }, [403, 'SignatureDoesNotMatch']],
      [{ headers: { ...headers, 'x-amz-meta-a': '2' } }, [403, 'SignatureDoesNotMatch']],
      [{ headers: { ...headers, 'x-amz-meta-b': '2' } }, [403, 'AccessDenied']],
      [{ headers: { ...headers, 'x-amz-copy-source': 'default/valid' } }, [403, 'AccessDenied']],
      [
        { headers: { ...headers, 'x-amz-content-sha256': sha256Hex('other') }, body: 'other' },
        [403, 'SignatureDoesNotMatch'],
      ],
      [
        { headers: { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }, body: 'other' },
        [403, 'SignatureDoesNotMatch'],
      ],
    ]
    for (const [change, expected] of cases) {
      expect(await answered(await send(request, change)), JSON.stringify(change)).toEqual(expected)
    }
    const found = await fetch(at('/default/replayed'), {
      headers: signS3(s3.keys, { method: 'GET', url: at('/default/replayed') }).headers,
    })
    expect(found.status).toBe(404)
  })

  test('a signature of another or a revoked key is rejected', async () => {
    const keys = s3.issueKey('write')
    const request = put('revoked')
    const wrong = signS3({ ...keys, secretAccessKey: s3.keys.secretAccessKey }, request)
    const reply = await fetch(request.url, { method: 'PUT', body: 'x', headers: wrong.headers })
    expect(await answered(reply)).toEqual([403, 'SignatureDoesNotMatch'])
    const { headers } = signS3(keys, request)
    const signed = () => fetch(request.url, { method: 'PUT', body: 'x', headers })
    expect((await signed()).status).toBe(200)
    s3.revokeKey(keys)
    expect(await answered(await signed())).toEqual([403, 'InvalidAccessKeyId'])
  })

  test.each([
    [-14, 200],
    [14, 200],
    [-16, 403],
    [16, 403],
  ])('a signature of a clock that is wrong by %d minutes gets %d', async (minutes, status) => {
    const atMillis = Date.now() + minutes * MINUTE
    const reply = await send({ ...put('skewed'), atMillis })
    expect(reply.status).toBe(status)
    if (status === 403) expect(codeIn(await reply.text())).toBe('RequestTimeTooSkewed')
  })

  test('no log has a signature or a secret', async () => {
    const request = put('logged')
    const { signature, headers } = signS3(s3.keys, request)
    await fetch(request.url, { method: 'PUT', body: 'other', headers })
    const url = await getSignedUrl(
      s3.client,
      new GetObjectCommand({ Bucket: 'default', Key: 'none' }),
    )
    expect((await fetch(url)).status).toBe(404)
    const records = JSON.stringify(s3.server.log.records())
    expect(records).toContain(s3.keys.accessKeyId)
    expect(records).not.toContain(signature)
    expect(records).not.toContain(new URL(url).searchParams.get('X-Amz-Signature'))
    expect(records).not.toContain(s3.keys.secretAccessKey.slice(10))
  })
})

describe('a signed URL', () => {
  const sign = (expiresIn: number) =>
    getSignedUrl(s3.client, new GetObjectCommand({ Bucket: 'default', Key: 'signed é' }), {
      expiresIn,
    })
  beforeAll(async () => {
    const input = { Bucket: 'default', Key: 'signed é', Body: '<script>', ContentType: 'text/html' }
    await s3.client.send(new PutObjectCommand(input))
  })

  test('a signed URL sends the object to browsers without executing it', async () => {
    const reply = await fetch(await sign(60))
    expect([reply.status, await reply.text()]).toEqual([200, '<script>'])
    expect(reply.headers.get('content-security-policy')).toBe('sandbox')
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
    const id = reply.headers.get('x-amz-request-id')
    expect(id).toMatch(/^req_/)
    expect(reply.headers.get('x-service-request-id')).toBe(id)
  })

  test('a signed URL stores an object', async () => {
    const command = new PutObjectCommand({ Bucket: 'default', Key: 'signed-put' })
    const url = await getSignedUrl(s3.client, command)
    expect((await fetch(url, { method: 'PUT', body: 'by URL' })).status).toBe(200)
    expect((await fetch(url)).status).toBe(403)
  })

  test('a signed URL expires and cannot be prolonged', async () => {
    const url = new URL(await sign(60))
    url.searchParams.set('X-Amz-Expires', '61')
    expect(await answered(await fetch(url))).toEqual([403, 'SignatureDoesNotMatch'])
    for (const expires of ['0', '604801', '-1', 'x', '']) {
      url.searchParams.set('X-Amz-Expires', expires)
      expect(await answered(await fetch(url)), expires).toEqual([
        400,
        'AuthorizationQueryParametersError',
      ])
    }
    const options = { expiresIn: 60, signingDate: new Date(Date.now() - 2 * MINUTE) }
    const command = new GetObjectCommand({ Bucket: 'default', Key: 'signed é' })
    const ended = await getSignedUrl(s3.client, command, options)
    expect(await answered(await fetch(ended))).toEqual([403, 'AccessDenied'])
  })

  test('a signed URL together with a signature in the header is rejected', async () => {
    const { headers } = signS3(s3.keys, { method: 'GET', url: at('/default/x') })
    const reply = await fetch(await sign(60), { headers })
    expect((await answered(reply))[0]).toBe(400)
  })
})

/** Sends bytes over a socket, since `fetch` corrects what is malformed. */
const raw = async (target: string, head = ''): Promise<string> => {
  const socket = s3.server.socket()
  let text = ''
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
  })
  socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${head}\r\n`)
  await new Promise((resolve) => socket.once('close', resolve))
  return `${text.split(' ', 2)[1]} ${codeIn(text)}`
}

test.each([
  ['an overlong form of a slash', '/v1/s3/default/%c0%af', '400 InvalidURI'],
  ['a lone byte of UTF-8', '/v1/s3/default/%ff', '400 InvalidURI'],
  ['a surrogate', '/v1/s3/default/%ed%a0%80', '400 InvalidURI'],
  ['NUL', '/v1/s3/default/a%00b', '400 InvalidURI'],
  ['half an escape', '/v1/s3/default/%2', '400 InvalidURI'],
  ['a key without a bucket', '/v1/s3//key', '400 InvalidURI'],
  ['a repeated parameter', '/v1/s3/default?prefix=a&prefix=b', '400 InvalidArgument'],
  ['too many parameters', `/v1/s3/default?${'a&'.repeat(3_000)}`, '400 InvalidURI'],
  ['a key over 1,024 bytes', `/v1/s3/default/${'a'.repeat(1_025)}`, '400 KeyTooLongError'],
  ['no signature', '/v1/s3/default/a', '403 AccessDenied'],
  ['a path that leaves the bucket', '/v1/s3/default/../other/a', '403 AccessDenied'],
])('a request with %s is rejected', async (_, target, expected) => {
  expect(await raw(target)).toBe(expected)
})

test('a path that leaves `/v1/s3` by dot segments is not an S3 request', async () => {
  expect(await raw('/v1/s3/../s3x/a')).toContain('404')
  expect(await raw('/v1/s3x')).toContain('404')
})

test('a key that a URL cannot name is not confused with another', async () => {
  const request = put('a/b')
  expect((await send(request)).status).toBe(200)
  // The runtime removes dot segments before anything sees the path, so the signature differs.
  const url = at('/default/a/c')
  const { headers } = signS3(s3.keys, { method: 'GET', url })
  const reply = await fetch(at('/default/a/c/../b'), { headers })
  expect(await answered(reply)).toEqual([403, 'SignatureDoesNotMatch'])
})

describe('XML of requests', () => {
  const post = (body: string) =>
    send({ method: 'POST', url: at('/default?delete='), body }).then(answered)
  const object = '<Object><Key>k</Key></Object>'
  test.each([
    ['a declaration of a type', `<!DOCTYPE a [<!ENTITY e "x">]><Delete>${object}</Delete>`],
    ['an unknown entity', '<Delete><Object><Key>&e;</Key></Object></Delete>'],
    ['a member of objects as entity', '<Delete><Object><Key>&valueOf;</Key></Object></Delete>'],
    ['a reference to NUL', '<Delete><Object><Key>&#0;</Key></Object></Delete>'],
    ['a reference to a surrogate', '<Delete><Object><Key>&#xD800;</Key></Object></Delete>'],
    ['a comment', `<Delete><!-- x -->${object}</Delete>`],
    ['CDATA', '<Delete><Object><Key><![CDATA[k]]></Key></Object></Delete>'],
    ['a processing instruction', `<Delete><?x y?>${object}</Delete>`],
    ['an open element', `<Delete>${object}`],
    ['crossed elements', '<Delete><Object><Key>k</Object></Key></Delete>'],
    ['two roots', `<Delete>${object}</Delete><Delete/>`],
    ['text after the root', `<Delete>${object}</Delete>x`],
    ['two keys', '<Delete><Object><Key>k</Key><Key>l</Key></Object></Delete>'],
    ['no object', '<Delete></Delete>'],
    ['another root', `<Other>${object}</Other>`],
    ['an empty text', ''],
    ['deep elements', '<Delete>'.repeat(20)],
    ['more than 1,000 objects', `<Delete>${object.repeat(1_001)}</Delete>`],
  ])('an XML body is rejected with %s', async (_, body) => {
    expect(await post(body)).toEqual([400, 'MalformedXML'])
  })

  test.each([
    ['10,000 parts in descending order', 10_000, -1, 'InvalidPartOrder'],
    ['10,001 parts', 10_001, 1, 'InvalidArgument'],
    ['10,000 parts that are not stored', 10_000, 1, 'InvalidPart'],
  ])('a completion with %s is rejected', { tags: ['slow'] }, async (_, count, direction, code) => {
    const numbers = Array.from({ length: count }, (_, i) => i + 1)
    const etag = `<ETag>&quot;${'a'.repeat(32)}&quot;</ETag>`
    const parts = numbers
      .sort((a, b) => direction * (a - b))
      .map((number) => `<Part><PartNumber>${number}</PartNumber>${etag}</Part>`)
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
    const { UploadId } = await s3.client.send(
      new CreateMultipartUploadCommand({ Bucket: 'default', Key: 'parts' }),
    )
    const url = at(`/default/parts?uploadId=${UploadId}`)
    expect((await answered(await send({ method: 'POST', url, body })))[1]).toBe(code)
  })

  test('entities of XML, namespaces and attributes are read', async () => {
    const body =
      '<?xml version="1.0"?>\n<s:Delete xmlns:s="http://s3.amazonaws.com/doc/2006-03-01/">' +
      '<s:Object><s:Key>&lt;&#233;&amp;&#x1F600;&gt;</s:Key></s:Object></s:Delete>'
    const reply = await send({ method: 'POST', url: at('/default?delete='), body })
    expect(await reply.text()).toContain('<Deleted><Key>&lt;é&amp;😀&gt;</Key></Deleted>')
  })

  test('a body over its bound is rejected before it is read', async () => {
    const body = `<Delete>${'x'.repeat(4 * 1024 * 1024)}`
    expect((await post(body))[1]).toBe('EntityTooLarge')
  })
})

test.each([
  [
    'a name of metadata of 200 characters',
    { [`x-amz-meta-${'a'.repeat(200)}`]: '1' },
    'InvalidArgument',
  ],
  ['metadata over 2 KiB', { 'x-amz-meta-a': 'x'.repeat(2_048) }, 'MetadataTooLarge'],
  ['metadata beyond ASCII', { 'x-amz-meta-a': 'é' }, 'InvalidArgument'],
  ['a malformed type', { 'content-type': 'no type' }, 'InvalidArgument'],
  ['a public ACL', { 'x-amz-acl': 'public-read' }, 'AccessControlListNotSupported'],
  ['a grant', { 'x-amz-grant-read': 'id=x' }, 'AccessControlListNotSupported'],
  ['encryption', { 'x-amz-server-side-encryption': 'AES256' }, 'NotImplemented'],
  ['a storage class', { 'x-amz-storage-class': 'GLACIER' }, 'InvalidStorageClass'],
  ['a session token', { 'x-amz-security-token': 'x' }, 'InvalidToken'],
  ['a trailer named as a member of objects', { 'x-amz-trailer': 'constructor' }, 'InvalidRequest'],
])('an upload with %s is rejected', async (_, headers, code) => {
  const reply = await send({ ...put('rejected'), headers: headers as Record<string, string> })
  expect(codeIn(await reply.text())).toBe(code)
})

test('headers of a response cannot be injected', async () => {
  const type = 'response-content-type'
  const url = `${at('/default/signed é')}?${type}=${encodeURIComponent('a/b\r\nset-cookie: x')}`
  const reply = await send({ method: 'GET', url })
  expect(await answered(reply)).toEqual([400, 'InvalidArgument'])
  const named = `${at('/default/signed é')}?${type}=a%2Fb`
  expect((await send({ method: 'GET', url: named })).headers.get('content-type')).toBe('a/b')
})

test.each([
  ['GET', '/default?policy=', '404 NoSuchBucketPolicy'],
  ['PUT', '/default?policy=', '501 NotImplemented'],
  ['PUT', '/default?versioning=', '501 NotImplemented'],
  ['GET', '/default?versions=', '501 NotImplemented'],
  ['GET', '/default/k?torrent=', '501 NotImplemented'],
  ['PUT', '/default/k?acl=', '501 NotImplemented'],
  ['GET', '/default?acl=', '200 AccessControlPolicy'],
  ['GET', '/default?versioning=', '200 VersioningConfiguration'],
  ['GET', '/default?location=', '200 LocationConstraint'],
  ['PUT', '/default', '409 BucketAlreadyOwnedByYou'],
  ['DELETE', '/default', '501 NotImplemented'],
  ['PUT', '/other', '403 AccessDenied'],
  ['GET', '/other/k', '403 AccessDenied'],
  ['PATCH', '/default/k', '405 MethodNotAllowed'],
])('%s %s answers %s', async (method, path, expected) => {
  const reply = await send({ method, url: at(path) })
  const text = await reply.text()
  const root = /<([A-Za-z]+) xmlns/.exec(text)?.[1]
  expect(`${reply.status} ${root ?? codeIn(text)}`).toBe(expected)
})

test('only pages of listed origins may use the S3-compatible API', async () => {
  const request = { method: 'GET', url: at('/default/signed é') }
  const { headers } = signS3(s3.keys, request)
  const foreign = { ...headers, origin: 'https://evil.example' }
  expect((await fetch(request.url, { headers: foreign })).status).toBe(403)
  const allowed = await fetch(request.url, { headers: { ...headers, origin: ORIGIN } })
  expect(allowed.headers.get('access-control-allow-origin')).toBe(ORIGIN)
  const preflight = await fetch(request.url, {
    method: 'OPTIONS',
    headers: {
      origin: ORIGIN,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'x-amz-date, authorization',
    },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT')
  expect(preflight.headers.get('access-control-allow-headers')).toContain('x-amz-date')
})

test('an interrupted upload leaves no bytes', async () => {
  const url = at('/default/broken')
  const headers = { 'content-length': '1000000' }
  const signed = signS3(s3.keys, { method: 'PUT', url, payload: 'UNSIGNED-PAYLOAD' }).headers
  const socket = s3.server.socket()
  const lines = Object.entries({ ...signed, ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const { host, pathname } = new URL(url)
  socket.write(`PUT ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('\r\n')}\r\n\r\nhello`)
  await expect.poll(() => s3.server.staged().length).toBe(1)
  socket.destroy()
  await expect.poll(() => s3.server.staged()).toEqual([])
  expect((await send({ method: 'GET', url })).status).toBe(404)
})

test('a peer that fails too often must wait, and its valid requests pass', {
  tags: ['slow'],
}, async () => {
  const limited = await openS3Api({ limits: applicationLimits({ monotonicMillis: () => 0 }) })
  const url = `${limited.endpoint}/default`
  const statuses = new Set<number>()
  for (let i = 0; i < 40; i++) statuses.add((await fetch(url)).status)
  expect(statuses).toEqual(new Set([403, 503]))
  const reply = await fetch(url)
  expect([reply.headers.get('retry-after'), codeIn(await reply.text())]).toEqual(['1', 'SlowDown'])
  const { headers } = signS3(limited.keys, { method: 'GET', url })
  expect((await fetch(url, { headers })).status).toBe(200)
  await limited.close()
})
