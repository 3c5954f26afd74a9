/** Mounts: how other services reach the routes of `http.ts`. */
import { MountChanged, MountDelete, MountDeleted, MountList, MountPut } from '../http/mounts.ts'
import { lookUpOperation } from './idempotency-records.ts'
import { environmentOperation } from './operation.ts'

export const listMounts = environmentOperation({
  method: 'GET',
  path: '/http-mounts',
  name: 'listMounts',
  summary: 'Lists the mounts of the routes of http.ts, without secrets.',
  capability: 'releases:read',
  replies: { 200: MountList },
})

export const putMount = environmentOperation({
  method: 'PUT',
  path: '/http-mounts/:mount',
  name: 'putMount',
  summary: 'Makes or changes a mount. Only this response contains a new secret of its path.',
  capability: 'channels:promote',
  operationId: 'required',
  body: { schema: MountPut },
  replies: { 200: MountChanged, 201: MountChanged },
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
  cache: 'no-store, max-age=0',
})

export const deleteMount = environmentOperation({
  method: 'DELETE',
  path: '/http-mounts/:mount',
  name: 'deleteMount',
  summary: 'Removes a mount. What was accepted before still runs.',
  capability: 'channels:promote',
  operationId: 'required',
  body: { schema: MountDelete },
  replies: { 200: MountDeleted },
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID'],
})

export const readMountOperation = lookUpOperation(
  '/http-mount-operations',
  'readMountOperation',
  'releases:read',
)

export const httpMountOperations = { listMounts, putMount, deleteMount, readMountOperation }
