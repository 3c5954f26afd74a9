/** Steps of the walk over all operations: a bucket, its storage keys and its objects. */
import { OPERATION_ID_HEADER } from '../../src/wire/idempotency-records.ts'
import type { State } from './arbitrary-requests.ts'
import type { Step, Walk } from './data-steps.ts'

const CONFIGURATION = { name: 'uploads', quotaBytes: '1000', maximumObjectBytes: null }
const BYTES = new TextEncoder().encode('hello')

export function bucketSteps({ now, newId, from }: Walk): readonly Step[] {
  const bucket = () => ({ bucketId: from('createBucket', 'bucketId') })
  const key = () => ({ ...bucket(), storageKeyId: from('issueStorageKey', 'storageKeyId') })
  const object = () => ({ ...bucket(), objectKey: 'a folder/a name' })
  const change = (state: State): State => ({
    ...state,
    headers: { [OPERATION_ID_HEADER]: newId('opn') },
  })
  const at = (body: object = {}) => ({ ...body, changedAtMicros: now() })
  const revised = (revision: string) => at({ expectedRevision: revision })
  return [
    ['createBucket', 201, () => change({ body: at({ configuration: CONFIGURATION }) })],
    ['listBuckets', 200, () => ({ query: { after: undefined } })],
    ['readBucket', 200, () => ({ params: bucket() })],
    [
      'readBucketOperation',
      200,
      () => ({ params: { operationId: from('createBucket', 'operation', 'operationId') } }),
    ],
    [
      'replaceBucket',
      200,
      () => {
        const body = { configuration: CONFIGURATION, ...revised(from('createBucket', 'revision')) }
        return change({ params: bucket(), body })
      },
    ],
    [
      'issueStorageKey',
      201,
      () => change({ params: bucket(), body: at({ name: 'ci', access: 'write' }) }),
    ],
    ['rotateStorageKey', 201, () => change({ params: key(), body: at() })],
    ['revokeStorageKey', 200, () => change({ params: key(), body: at() })],
    ['listStorageKeys', 200, () => ({ params: bucket(), query: { after: undefined } })],
    ['putObject', 201, () => change({ params: object(), body: BYTES })],
    [
      'listObjects',
      200,
      () => ({ params: bucket(), query: { after: undefined, prefix: 'a folder/' } }),
    ],
    ['readObject', 200, () => ({ params: object() })],
    ['readObjectHeaders', 200, () => ({ params: object() })],
    ['deleteObject', 200, () => change({ params: object() })],
    [
      'archiveBucket',
      200,
      () => change({ params: bucket(), body: revised(from('replaceBucket', 'revision')) }),
    ],
  ]
}
