/** Steps of the walk over all operations: a mount of the routes of http.ts. */
import { OPERATION_ID_HEADER } from '../../src/wire/idempotency-records.ts'
import type { Step, Walk } from './data-steps.ts'

const CONFIGURATION = {
  target: 'channel:production',
  rateLimit: 5,
  pathToken: true,
  publicUrl: 'https://api.example.com',
}

export function mountSteps({ now, newId, from }: Walk): readonly Step[] {
  const params = { mount: 'payments' }
  const change = (body: object) => ({
    params,
    headers: { [OPERATION_ID_HEADER]: newId('opn') },
    body: { ...body, changedAtMicros: now() },
  })
  return [
    ['putMount', 201, () => change({ configuration: CONFIGURATION, expectedRevision: 0 })],
    ['listMounts', 200],
    [
      'readMountOperation',
      200,
      () => ({ params: { operationId: from('putMount', 'operation', 'operationId') } }),
    ],
    ['deleteMount', 200, () => change({ expectedRevision: from('putMount', 'revision') })],
  ]
}
