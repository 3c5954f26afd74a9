/**
 * The S3-compatible API: `/v1/s3` on the application origin, path style, outside the error envelope
 * (contract/wire.md, S3-compatible API). Keys belong to one bucket and are authenticated by their
 * signatures.
 */
import { Fault } from '../../../errors/fault.ts'
import { endExchange, startSpan } from '../exchanges.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import { errorResponse } from './error-responses.ts'
import { S3Fault, s3StatusOf, toS3Failure } from './errors.ts'
import { listBuckets } from './operations/listing.ts'
import type { BucketCall, ObjectCall, S3Call } from './operations/operation.ts'
import { bucketOperation, METHODS, type Operation, objectOperation } from './operations/table.ts'
import { parseS3Url, type S3Url } from './requests.ts'
import { authenticateS3, requireAccess, type S3Caller } from './signature/authentication.ts'

/** The facts about a request that are known if it fails. */
interface Known {
  caller: S3Caller | null
  routeClass: Operation<BucketCall>['routeClass']
}

/** Answers one request. Never rejects. */
export async function answerS3(gateway: Gateway, incoming: Incoming): Promise<Response> {
  const { request, requestId } = incoming
  const origin = request.headers.get('origin')
  const started = gateway.system.monotonicMillis()
  const known: Known = { caller: null, routeClass: null }
  let response: Response
  try {
    checkRequest(gateway, origin)
    const url = parseS3Url(request.url)
    const caller = authenticateS3(gateway, incoming, url)
    known.caller = caller
    if (gateway.traces) {
      const credential = { 'svc.storage_key.id': caller.storageKeyId }
      startSpan(gateway, incoming, { ...routeOf(request, url), started }, credential)
    }
    response = await perform({ gateway, incoming, request, url, query: url.query, caller }, known)
  } catch (error) {
    response = failed(gateway, incoming, known.caller, error)
  }
  incoming.bodyMemory?.release()
  const { headers } = response
  headers.set('x-amz-request-id', requestId)
  headers.set('x-service-request-id', requestId)
  headers.set('x-content-type-options', 'nosniff')
  const routeClass = known.routeClass ?? undefined
  return endExchange(gateway, incoming, { response, origin, started, routeClass })
}

function checkRequest({ allowedOrigins, engine }: Gateway, origin: string | null): void {
  if (origin !== null && !allowedOrigins.has(origin)) {
    throw new S3Fault('AccessDenied', 'the browser origin is not allowed')
  }
  if (!engine.ready()) throw new Fault('UNAVAILABLE', { detail: 'the engine is not ready yet' })
}

/** Returns the route as spans show it. An unknown method is hidden, since it may be a secret. */
function routeOf({ method }: Request, { bucket, key }: S3Url) {
  const below = bucket === null ? '' : key === null ? '/:bucket' : '/:bucket/:key'
  return { path: `/v1/s3${below}`, method: METHODS.includes(method) ? method : '_OTHER' }
}

async function perform(call: S3Call, known: Known): Promise<Response> {
  const { url, caller, request } = call
  const { bucket, key } = url
  if (bucket === null) {
    if (request.method === 'GET') return listBuckets(call)
    throw new S3Fault('MethodNotAllowed')
  }
  if (key === null) {
    const bucketCall: BucketCall = { ...call, bucket }
    const operation = bucketOperation(bucketCall)
    known.routeClass = operation.routeClass
    requireAccess(caller, bucket, operation.access)
    return operation.handle(bucketCall)
  }
  const objectCall: ObjectCall = { ...call, bucket, key }
  const operation = objectOperation(objectCall)
  known.routeClass = operation.routeClass
  requireAccess(caller, bucket, operation.access)
  return operation.handle(objectCall)
}

function failed(
  gateway: Gateway,
  incoming: Incoming,
  caller: S3Caller | null,
  error: unknown,
): Response {
  const { request, requestId, trace } = incoming
  const failure = toS3Failure(error)
  const { fault, s3Code } = failure
  trace?.set({ 'svc.error.code': s3Code })
  const storageKeyId = caller?.storageKeyId
  const status = s3StatusOf(s3Code)
  if (status < 500 || s3Code === 'SlowDown') {
    gateway.counts.failed(fault)
    gateway.rejections.add({ ...incoming, storageKeyId }, fault)
  } else {
    const { code: errorCode, detail, cause } = fault
    const level = request.signal.aborted ? 'debug' : 'error'
    gateway.log[level]('s3.failed', {
      requestId,
      storageKeyId,
      errorCode,
      detail,
      error: cause,
      ...trace?.logFields,
    })
  }
  return errorResponse(failure, resourceOf(request), requestId)
}

/** Returns the path without its query, which may hold a signature. */
function resourceOf({ url }: Request): string {
  return new URL(url).pathname
}
