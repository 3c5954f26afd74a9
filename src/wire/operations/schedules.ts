/** Scheduled work: the queue with its history, and the cancellation of a piece. */
import { ScheduledChanged, ScheduledPage, ScheduledQuery } from '../schedules.ts'
import { environmentOperation } from './operation.ts'

/** Bytes of a page with the most entries and the longest names. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024

export const listScheduled = environmentOperation({
  method: 'GET',
  path: '/scheduled',
  name: 'listScheduled',
  summary: 'Scheduled work that is pending or has ended within 7 days, in the order of the IDs.',
  capability: 'schedules:read',
  query: ScheduledQuery,
  replies: { 200: ScheduledPage },
  errors: ['PRODUCT_UNAVAILABLE'],
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const cancelScheduled = environmentOperation({
  method: 'POST',
  path: '/scheduled/:scheduledId/cancel',
  name: 'cancelScheduled',
  summary: 'Cancels scheduled work that has not started.',
  capability: 'cron:activate',
  operationId: 'required',
  replies: { 200: ScheduledChanged },
  errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE'],
})

export const scheduleOperations = { listScheduled, cancelScheduled }
