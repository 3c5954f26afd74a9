/** Objects of a bucket that pass through the management origin. */
import { Fault } from '../../../errors/fault.ts'
import { type ObjectState, objectState } from '../../../product/files/console-objects.ts'
import type { Applied } from '../../../product/idempotency/idempotency-records.ts'
import { decodeBase64Url, encodeBase64Url } from '../../../value/base64url.ts'
import { CONSOLE_OBJECT_BYTES_MAX } from '../../../value/files/buckets.ts'
import type { Id } from '../../../value/ids.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import {
  ObjectChanged,
  type ObjectField,
  ObjectPage,
  ObjectsQuery,
} from '../../../wire/files/buckets.ts'
import { fileAnswer } from '../../application/files/file-answers.ts'
import { streamBody } from '../../bodies.ts'
import { MANAGEMENT_CODES } from '../../errors.ts'
import { operationField } from '../idempotency-operations.ts'
import { ANY_MEDIA_TYPE, environmentRoute, type Route } from '../route.ts'
import type { BucketsApp } from './app.ts'

const OBJECTS = '/buckets/:bucketId/objects'
const BINARY = 'application/octet-stream'

export const objectRoutes: readonly Route<BucketsApp>[] = [
  environmentRoute({
    method: 'GET',
    path: OBJECTS,
    name: 'listObjects',
    summary: 'Lists objects in the order of the UTF-8 of their keys.',
    capability: 'storage:read',
    query: ObjectsQuery,
    replies: { 200: ObjectPage },
    async handle({ app, params: { bucketId }, query }) {
      const { prefix = '', limit = PAGE_DEFAULT, after } = query
      const from = after === undefined ? '' : keyOfCursor(after)
      const { objects, next } = await app.objects.list(bucketId, { prefix, from, limit })
      const body: ObjectPage = {
        version: 1,
        items: objects.map((each) => objectField(objectState(each))),
        next: next === null ? null : encodeBase64Url(new TextEncoder().encode(next)),
      }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: `${OBJECTS}/:objectKey`,
    name: 'readObject',
    summary: 'Returns at most 64 MiB of an object: its bytes, or one range of them.',
    capability: 'storage:read',
    mediaTypes: [ANY_MEDIA_TYPE],
    cache: 'private, no-store',
    replies: { 200: null, 206: null, 304: null },
    errors: ['PLATFORM_BODY_TOO_LARGE', 'RANGE_INVALID', 'UNAVAILABLE'],
    async handle({ app, params: { bucketId, objectKey }, request }) {
      const found = await app.objects.read({ bucketId, key: objectKey })
      const options = { fileName: null, bytesMax: CONSOLE_OBJECT_BYTES_MAX }
      const file = await fileAnswer(app.files, request, found, options)
      if (file === 'unsatisfiable') throw new Fault('RANGE_INVALID')
      if (file === 'too-large') throw tooLarge()
      return { status: file.status as 200 | 206 | 304, file }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: `${OBJECTS}/:objectKey`,
    name: 'putObject',
    summary: 'Stores an object, in place of the one that has its key.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { mediaType: ANY_MEDIA_TYPE, bytesMax: CONSOLE_OBJECT_BYTES_MAX },
    replies: { 200: ObjectChanged, 201: ObjectChanged },
    errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
    async handle({ app, actor, params, operationId, request, requestId, pace, authorized }) {
      const { bucketId, objectKey: key } = params
      const { headers } = request
      const contentType = headers.get('content-type') ?? BINARY
      const bytesExpected = Number(headers.get('content-length') ?? 0)
      const applied = await app.objectUploads.run(() => {
        const body = streamBody(request, CONSOLE_OBJECT_BYTES_MAX, MANAGEMENT_CODES, pace)
        const named = { bucketId, key, operationId, requestId, contentType }
        return app.objects.put(actor, { ...named, body, bytesExpected, authorized })
      })
      return { status: applied.operation.replayed ? 200 : 201, body: changedBody(applied) }
    },
  }),

  environmentRoute({
    method: 'DELETE',
    path: `${OBJECTS}/:objectKey`,
    name: 'deleteObject',
    summary: 'Deletes an object.',
    capability: 'storage:manage',
    operationId: 'required',
    replies: { 200: ObjectChanged },
    errors: ['PRODUCT_INVALID'],
    async handle({ app, actor, params, operationId, requestId }) {
      const { bucketId, objectKey: key } = params
      const input = { bucketId, key, operationId, requestId }
      return { status: 200, body: changedBody(await app.objects.remove(actor, input)) }
    },
  }),
]

/** Whether the request is for an object, whose bytes HEAD must not read. */
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

function objectField({ fileId, ...state }: ObjectState): ObjectField {
  return { ...state, fileId: fileId as Id<'fil'> }
}

function changedBody({ result, operation }: Applied<ObjectState>): ObjectChanged {
  return { version: 1, object: objectField(result), operation: operationField(operation) }
}
