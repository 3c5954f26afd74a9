/** Authenticates requests of S3 clients by their signature. */
import type { StorageCaller } from '../../../../product/buckets/storage-callers.ts'
import { credentialLimit, peerOf, requireNoWait } from '../../../rate-limits.ts'
import { FAILURE_RATE } from '../../callers.ts'
import type { Gateway } from '../../gateway.ts'
import type { Incoming } from '../../incoming.ts'
import { S3Fault } from '../errors.ts'
import type { S3Url } from '../requests.ts'
import { type Authorization, parseAuthorization } from './authorizations.ts'
import { isSignedBy, signingKey } from './signatures.ts'

export interface S3Caller extends StorageCaller {
  readonly authorization: Authorization
  /** The key that signs chunks. */
  readonly signingKey: Uint8Array
  /** The digest of the body in hexadecimal, or the name of a mode. */
  readonly payload: string
}

export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD'
/** Digests and names of modes. Names of S3 that are not implemented match too. */
const PAYLOAD = /^(?:[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-[A-Z0-9-]{1,64})$/
/** Difference between the clocks of client and server, as in S3. */
const SKEW_MILLIS = 15 * 60 * 1000

/**
 * Authenticates the caller. Throws the codes of S3, and RATE_LIMITED for a key over its rate or a
 * peer over its failure limit.
 */
export function authenticateS3(gateway: Gateway, incoming: Incoming, url: S3Url): S3Caller {
  const peer = peerOf(incoming.binding)
  const { limits } = gateway
  try {
    const caller = findCaller(gateway, incoming.request, url)
    const seconds = limits?.credentials.take(caller.storageKeyId, credentialLimit(null)) ?? 0
    requireNoWait(seconds, 'RATE_LIMITED', 'requests with one storage key')
    return caller
  } catch (error) {
    if (error instanceof S3Fault && limits !== null) {
      requireNoWait(limits.failures.take(peer), 'RATE_LIMITED', FAILURE_RATE)
    }
    throw error
  }
}

function findCaller(gateway: Gateway, { method, headers }: Request, url: S3Url): S3Caller {
  const authorization = parseAuthorization(headers, url)
  const { accessKeyId, signedHeaders, expiresSeconds } = authorization
  for (const name of headers.keys()) {
    // All headers that change the request must be signed, so that no third party can add one.
    if (!name.startsWith('x-amz-') || signedHeaders.includes(name)) continue
    throw new S3Fault('AccessDenied', `the header ${name} is not signed`)
  }
  checkTime(gateway.system.nowMillis(), authorization)
  const stated = headers.get('x-amz-content-sha256') ?? url.query.get('X-Amz-Content-Sha256')
  const payload = stated ?? (expiresSeconds === null ? null : UNSIGNED_PAYLOAD)
  if (payload === null) throw new S3Fault('InvalidRequest', 'x-amz-content-sha256 is missing')
  if (!PAYLOAD.test(payload)) throw new S3Fault('InvalidArgument', 'x-amz-content-sha256')
  const found = gateway.files.storageKeys.find(accessKeyId)
  if (found === null) throw new S3Fault('InvalidAccessKeyId')
  const key = signingKey(found.secretAccessKey, authorization)
  if (!isSignedBy(key, authorization, { method, url, headers, payload })) {
    throw new S3Fault('SignatureDoesNotMatch')
  }
  return { ...found, authorization, signingKey: key, payload }
}

function checkTime(nowMillis: number, { atMillis, expiresSeconds }: Authorization): void {
  const isEarly = atMillis > nowMillis + SKEW_MILLIS
  if (expiresSeconds === null) {
    if (isEarly || atMillis < nowMillis - SKEW_MILLIS) throw new S3Fault('RequestTimeTooSkewed')
    return
  }
  if (isEarly) throw new S3Fault('AccessDenied', 'the signed URL is not valid yet')
  if (atMillis + expiresSeconds * 1000 < nowMillis) {
    throw new S3Fault('AccessDenied', 'the signed URL has expired')
  }
}

/** Throws AccessDenied unless the key may use the bucket in this way. */
export function requireAccess(
  { bucketName, access }: S3Caller,
  bucket: string,
  needed: 'read' | 'write',
): void {
  if (bucket !== bucketName) throw new S3Fault('AccessDenied', 'the key is for another bucket')
  if (needed === 'read' || access === 'write') return
  throw new S3Fault('AccessDenied', 'the key may only read')
}
