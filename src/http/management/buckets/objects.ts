/** Objects of a bucket that pass through the management origin. */
import { Fault } from '../../../errors/fault.ts'
import { type ObjectState, objectState } from '../../../product/files/console-objects.ts'
import type { Applied } from '../../../product/idempotency/idempotency-records.ts'
import { decodeBase64Url, encodeBase64Url } from '../../../value/base64url.ts'
import { CONSOLE_OBJECT_BYTES_MAX } from '../../../value/files/buckets.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import type { ObjectChanged, ObjectPage } from '../../../wire/files/buckets.ts'
import { objectOperations } from '../../../wire/operations/buckets/objects.ts'
import { streamBody } from '../../bodies.ts'
import { MANAGEMENT_CODES } from '../../errors.ts'
import { fileAnswer } from '../../file-answers.ts'
import { operationField } from '../idempotency-operations.ts'
import { bind, type Route } from '../route.ts'
import type { BucketsApp } from './app.ts'

const BINARY = 'application/octet-stream'

export const objectRoutes: readonly Route<BucketsApp>[] = bind(objectOperations, {
  async listObjects({ app, params: { bucketId }, query }) {
    const { prefix = '', limit = PAGE_DEFAULT, after } = query
    const from = after === undefined ? '' : keyOfCursor(after)
    const { objects, next } = await app.objects.list(bucketId, { prefix, from, limit })
    const body: ObjectPage = {
      version: 1,
      items: objects.map(objectState),
      next: next === null ? null : encodeBase64Url(new TextEncoder().encode(next)),
    }
    return { status: 200, body }
  },

  async readObject({ app, params: { bucketId, objectKey }, request }) {
    const found = await app.objects.read({ bucketId, key: objectKey })
    const options = { fileName: null, bytesMax: CONSOLE_OBJECT_BYTES_MAX }
    const file = await fileAnswer(app.files, request, found, options)
    if (file === 'unsatisfiable') throw new Fault('RANGE_INVALID')
    if (file === 'too-large') throw tooLarge()
    return { status: file.status as 200 | 206 | 304, file }
  },

  async putObject(received) {
    const { app, actor, params, operationId, request, requestId, authorized } = received
    const { bucketId, objectKey: key } = params
    const { headers } = request
    const contentType = headers.get('content-type') ?? BINARY
    const bytesExpected = Number(headers.get('content-length') ?? 0)
    const applied = await app.objectUploads.run(() => {
      const { pace, turns } = received
      const body = streamBody(request, CONSOLE_OBJECT_BYTES_MAX, MANAGEMENT_CODES, pace, turns)
      const named = { bucketId, key, operationId, requestId, contentType }
      return app.objects.put(actor, { ...named, body, bytesExpected, authorized })
    })
    return { status: applied.operation.replayed ? 200 : 201, body: changedBody(applied) }
  },

  async deleteObject({ app, actor, params, operationId, requestId }) {
    const { bucketId, objectKey: key } = params
    const input = { bucketId, key, operationId, requestId }
    return { status: 200, body: changedBody(await app.objects.remove(actor, input)) }
  },
})

/** Returns whether the request is for an object, whose bytes HEAD must not read. */
export function isObjectRequest({ url }: Request): boolean {
  return /^[^?]*\/buckets\/[^/?]+\/objects\/[^?]/.test(url)
}

/** Throws PLATFORM_REQUEST_INVALID for what no page has as its `next`. */
function keyOfCursor(after: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(decodeBase64Url(after))
  } catch (cause) {
    const violations = [{ path: 'query.after', rule: 'the next of the page before' }]
    throw new Fault('PLATFORM_REQUEST_INVALID', { cause, violations })
  }
}

function tooLarge(): Fault {
  const rule = `a range of at most ${CONSOLE_OBJECT_BYTES_MAX} bytes`
  return new Fault('PLATFORM_BODY_TOO_LARGE', { violations: [{ path: 'range', rule }] })
}

function changedBody({ result, operation }: Applied<ObjectState>): ObjectChanged {
  return { version: 1, object: result, operation: operationField(operation) }
}
