/** Objects of a bucket that pass through the management origin. */
import { CONSOLE_OBJECT_BYTES_MAX } from '../../../value/files/buckets.ts'
import { ObjectChanged, ObjectPage, ObjectsQuery } from '../../files/buckets.ts'
import { ANY_MEDIA_TYPE } from '../../media-types.ts'
import { schema } from '../../schema.ts'
import { environmentOperation } from '../operation.ts'

/** 1,000 objects whose keys have 1,024 characters that JSON escapes. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024
/** Time for 64 MiB at 256 KiB/s, rounded up. */
const TRANSFER_DEADLINE_MS = 300_000

const OBJECTS = '/buckets/:bucketId/objects'

/**
 * A header with which a client asks for a part of an object, or only for another one. What they do
 * not understand, servers ignore (RFC 9110, sections 13.1.2 and 14.2).
 */
const CONDITION = { optional: schema('string') }

export const listObjects = environmentOperation({
  method: 'GET',
  path: OBJECTS,
  name: 'listObjects',
  summary: 'Lists objects in the order of the UTF-8 of their keys.',
  capability: 'storage:read',
  query: ObjectsQuery,
  replies: { 200: ObjectPage },
  responseBytesMax: PAGE_BYTES_MAX,
})

export const readObject = environmentOperation({
  method: 'GET',
  path: `${OBJECTS}/:objectKey`,
  name: 'readObject',
  summary: 'Returns at most 64 MiB of an object: its bytes, or one range of them.',
  capability: 'storage:read',
  mediaTypes: [ANY_MEDIA_TYPE],
  cache: 'private, no-store',
  headers: {
    'if-none-match': CONDITION,
    range: CONDITION,
    'if-range': CONDITION,
  },
  replies: { 200: 'bytes', 206: 'bytes', 304: null },
  compresses: false,
  errors: ['PLATFORM_BODY_TOO_LARGE', 'RANGE_INVALID', 'UNAVAILABLE'],
  deadlineMs: TRANSFER_DEADLINE_MS,
})

export const putObject = environmentOperation({
  method: 'PUT',
  path: `${OBJECTS}/:objectKey`,
  name: 'putObject',
  summary: 'Stores an object, in place of the one that has its key.',
  capability: 'storage:manage',
  operationId: 'required',
  body: { mediaType: ANY_MEDIA_TYPE, bytesMax: CONSOLE_OBJECT_BYTES_MAX },
  replies: { 200: ObjectChanged, 201: ObjectChanged },
  errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
  deadlineMs: TRANSFER_DEADLINE_MS,
})

export const deleteObject = environmentOperation({
  method: 'DELETE',
  path: `${OBJECTS}/:objectKey`,
  name: 'deleteObject',
  summary: 'Deletes an object.',
  capability: 'storage:manage',
  operationId: 'required',
  replies: { 200: ObjectChanged },
  errors: ['PRODUCT_INVALID'],
})

export const objectOperations = { listObjects, readObject, putObject, deleteObject }
