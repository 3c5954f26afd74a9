/** Mounts: how other services reach the routes of `http.ts`. */
import {
  DeliveriesQuery,
  DeliveryPage,
  DeliveryRead,
  DeliveryReplayed,
} from '../http/deliveries.ts'
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

/** Bytes of a page: paths and messages of 1,000 deliveries, which few are as long as. */
const PAGE_BYTES_MAX = 48 * 1024 * 1024
/** Bytes of one delivery: a body of 512 KiB in base64url, and headers of which most are short. */
const DELIVERY_BYTES_MAX = 2 * 1024 * 1024

export const listDeliveries = environmentOperation({
  method: 'GET',
  path: '/http-mounts/:mount/deliveries',
  name: 'listDeliveries',
  summary: 'Lists the deliveries of a mount that are unfinished or ended within 7 days.',
  capability: 'logs:read',
  query: DeliveriesQuery,
  replies: { 200: DeliveryPage },
  errors: ['PRODUCT_UNAVAILABLE'],
  responseBytesMax: PAGE_BYTES_MAX,
})

export const readDelivery = environmentOperation({
  method: 'GET',
  path: '/http-mounts/:mount/deliveries/:scheduledId',
  name: 'readDelivery',
  summary: 'One delivery; its headers, query and body only for callers with data:read.',
  capability: 'logs:read',
  replies: { 200: DeliveryRead },
  errors: ['PRODUCT_UNAVAILABLE'],
  responseBytesMax: DELIVERY_BYTES_MAX,
})

export const replayDelivery = environmentOperation({
  method: 'POST',
  path: '/http-mounts/:mount/deliveries/:scheduledId/replay',
  name: 'replayDelivery',
  summary: 'Runs a failed delivery again, with the handler that the mount has now.',
  capability: 'data:write',
  operationId: 'required',
  replies: { 200: DeliveryReplayed },
  errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE'],
})

export const readMountOperation = lookUpOperation(
  '/http-mount-operations',
  'readMountOperation',
  'releases:read',
)

export const httpMountOperations = {
  listMounts,
  putMount,
  deleteMount,
  listDeliveries,
  readDelivery,
  replayDelivery,
  readMountOperation,
}
