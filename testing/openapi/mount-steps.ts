/** Steps of the walk over all operations: a mount of the routes of http.ts, and its deliveries. */
import { OPERATION_ID_HEADER } from '../../src/wire/idempotency-records.ts'
import type { Step, Walk } from './data-steps.ts'

const CONFIGURATION = {
  target: 'channel:production',
  rateLimit: 5,
  pathToken: true,
  publicUrl: 'https://api.example.com',
}

/** Stores a delivery that has failed; returns its ID. */
export type FailDelivery = (request: { readonly mount: string }) => Promise<string>

export function mountSteps(
  { now, newId, from }: Walk,
  failDelivery: FailDelivery,
): readonly Step[] {
  const params = { mount: 'payments' }
  const change = (body: object) => ({
    params,
    headers: { [OPERATION_ID_HEADER]: newId('opn') },
    body: { ...body, changedAtMicros: now() },
  })
  const delivery = () => {
    return { ...params, scheduledId: from('listDeliveries', 'items', 0, 'deliveryId') }
  }
  return [
    ['putMount', 201, () => change({ configuration: CONFIGURATION, expectedRevision: 0 })],
    ['listMounts', 200],
    [
      'readMountOperation',
      200,
      () => ({ params: { operationId: from('putMount', 'operation', 'operationId') } }),
    ],
    [
      'listDeliveries',
      200,
      async () => {
        await failDelivery(params)
        return { params, query: { after: undefined, route: undefined, state: 'failed' } }
      },
    ],
    ['readDelivery', 200, () => ({ params: delivery() })],
    [
      'replayDelivery',
      200,
      () => ({ params: delivery(), headers: { [OPERATION_ID_HEADER]: newId('opn') } }),
    ],
    ['deleteMount', 200, () => change({ expectedRevision: from('putMount', 'revision') })],
  ]
}
