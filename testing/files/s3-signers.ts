/** Signs S3 requests as clients do, so that tests can then change them. */
import { hmacSha256, sha256Hex } from '../../src/system/digests.ts'
import type { S3Keys } from './s3-remotes.ts'

export interface Unsigned {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** The value of x-amz-content-sha256; default: the digest of the body. */
  readonly payload?: string
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** Unix milliseconds; default: now. */
  readonly atMillis?: number
}

export interface Signed {
  readonly headers: Record<string, string>
  readonly signature: string
  readonly scope: string
  readonly timestamp: string
  readonly key: Uint8Array
}

export function signS3(keys: S3Keys, request: Unsigned): Signed {
  const { method, url, body = '', atMillis = Date.now() } = request
  const { host, pathname, searchParams } = new URL(url)
  const payload = request.payload ?? sha256Hex(body)
  const timestamp = `${new Date(atMillis).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
  const scope = `${timestamp.slice(0, 8)}/test-1/s3/aws4_request`
  const headers: Record<string, string> = {
    host,
    'x-amz-content-sha256': payload,
    'x-amz-date': timestamp,
    ...request.headers,
  }
  const names = Object.keys(headers).sort()
  const query = [...searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
  const lines = names.map((name) => `${name}:${headers[name]!.trim()}\n`).join('')
  const path = decodeURIComponent(pathname).split('/').map(encode).join('/')
  const canonical = [method, path, query, lines, names.join(';'), payload].join('\n')
  const text = ['AWS4-HMAC-SHA256', timestamp, scope, sha256Hex(canonical)].join('\n')
  const parts = scope.split('/')
  const key = parts.reduce<Uint8Array>(
    (from, part) => hmacSha256(from, part),
    Buffer.from(`AWS4${keys.secretAccessKey}`),
  )
  const signature = hmacSha256(key, text).toString('hex')
  const credential = `${keys.accessKeyId}/${scope}`
  const authorization =
    `AWS4-HMAC-SHA256 Credential=${credential},SignedHeaders=${names.join(';')},` +
    `Signature=${signature}`
  const { host: _, ...sent } = headers
  return { headers: { ...sent, authorization }, signature, scope, timestamp, key }
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
