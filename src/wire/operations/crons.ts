/** Crons: declarations with their activation, enabling and disabling, and runs by hand. */
import { CronActivate, CronActivated, CronList, CronsQuery } from '../crons.ts'
import { ScheduledChanged } from '../schedules.ts'
import { lookUpOperation } from './idempotency-records.ts'
import { environmentOperation } from './operation.ts'

/** Bytes of a list with the most entries and the longest names. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024

export const listCrons = environmentOperation({
  method: 'GET',
  path: '/crons',
  name: 'listCrons',
  summary: 'Lists the Crons of a target, or those in force, with their activation.',
  capability: 'cron:read',
  query: CronsQuery,
  replies: { 200: CronList },
  errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED', 'PRODUCT_UNAVAILABLE'],
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const activateCron = environmentOperation({
  method: 'PUT',
  path: '/crons/:cron/activation',
  name: 'activateCron',
  summary: 'Enables or disables a Cron in force, also for later Releases.',
  capability: 'cron:activate',
  operationId: 'required',
  body: { schema: CronActivate },
  replies: { 200: CronActivated },
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_UNAVAILABLE'],
})

export const runCron = environmentOperation({
  method: 'POST',
  path: '/crons/:cron/run',
  name: 'runCron',
  summary: 'Schedules a run of a Cron in force now, whether it is enabled or not.',
  capability: 'cron:activate',
  operationId: 'required',
  replies: { 200: ScheduledChanged },
  errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE'],
})

export const readCronOperation = lookUpOperation(
  '/cron-operations',
  'readCronOperation',
  'cron:read',
)

export const cronOperations = { listCrons, activateCron, runCron, readCronOperation }
