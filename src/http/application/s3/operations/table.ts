/** Selects the operation of a request by its method, its subresource, and its bucket or object. */
import { type S3Code, S3Fault } from '../errors.ts'
import { getAttributes } from './attributes.ts'
import {
  accessControl,
  bucketLocation,
  bucketVersioning,
  createBucket,
  headBucket,
  objectTagging,
  requestPayment,
} from './buckets.ts'
import { copyObject } from './copies.ts'
import { deleteMany, deleteOne } from './deletions.ts'
import { getObject } from './downloads.ts'
import { listVersion1, listVersion2 } from './listing.ts'
import {
  abortUpload,
  completeUpload,
  createMultipart,
  uploadPart,
  uploadPartCopy,
} from './multipart.ts'
import { listUploadParts, listUploads } from './multipart-lists.ts'
import type { BucketCall, Handler, ObjectCall } from './operation.ts'
import { putObject } from './uploads.ts'

export interface Operation<C extends BucketCall> {
  readonly access: 'read' | 'write'
  readonly handle: Handler<C>
  /** The histogram of the durations; null for an operation that transfers no object. */
  readonly routeClass: 'upload' | 'download' | null
}

const read = <C extends BucketCall>(handle: Handler<C>) =>
  ({ access: 'read', handle, routeClass: null }) as const
const write = <C extends BucketCall>(handle: Handler<C>) =>
  ({ access: 'write', handle, routeClass: null }) as const
const missing = (code: S3Code) =>
  read<BucketCall>(() => {
    throw new S3Fault(code)
  })

/** Parameters that select an operation. Any other parameter is an argument of one. */
const SUBRESOURCES = new Set([
  'accelerate',
  'acl',
  'analytics',
  'attributes',
  'cors',
  'delete',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'lifecycle',
  'location',
  'logging',
  'metadataTable',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'renameObject',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'select',
  'session',
  'tagging',
  'torrent',
  'uploadId',
  'uploads',
  'versionId',
  'versioning',
  'versions',
  'website',
])

const BUCKET_OPERATIONS: Readonly<Record<string, Operation<BucketCall>>> = {
  GET: read((call) =>
    call.query.get('list-type') === '2' ? listVersion2(call) : listVersion1(call),
  ),
  HEAD: read(headBucket),
  PUT: write(createBucket),
  'POST delete': write(deleteMany),
  'GET uploads': read(listUploads),
  'GET location': read(bucketLocation),
  'GET versioning': read(bucketVersioning),
  'GET requestPayment': read(requestPayment),
  'GET acl': read(accessControl),
  'GET policy': missing('NoSuchBucketPolicy'),
  'GET cors': missing('NoSuchCORSConfiguration'),
  'GET lifecycle': missing('NoSuchLifecycleConfiguration'),
  'GET tagging': missing('NoSuchTagSet'),
  'GET website': missing('NoSuchWebsiteConfiguration'),
}

const OBJECT_OPERATIONS: Readonly<Record<string, Operation<ObjectCall>>> = {
  GET: { ...read(getObject), routeClass: 'download' },
  HEAD: { ...read(getObject), routeClass: 'download' },
  PUT: { ...write(putObject), routeClass: 'upload' },
  'PUT copy': write(copyObject),
  DELETE: write(deleteOne),
  'GET acl': read(accessControl),
  'GET attributes': read(getAttributes),
  'GET tagging': read(objectTagging),
  'GET uploadId': read(listUploadParts),
  'POST uploads': write(createMultipart),
  'PUT uploadId': { ...write(uploadPart), routeClass: 'upload' },
  'PUT uploadId copy': write(uploadPartCopy),
  'POST uploadId': write(completeUpload),
  'DELETE uploadId': write(abortUpload),
}

export const METHODS: readonly string[] = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']

export function bucketOperation(call: BucketCall): Operation<BucketCall> {
  return find(BUCKET_OPERATIONS, call)
}

export function objectOperation(call: ObjectCall): Operation<ObjectCall> {
  return find(OBJECT_OPERATIONS, call)
}

/** Returns the operation. Throws NotImplemented and MethodNotAllowed. */
function find<C extends BucketCall>(
  operations: Readonly<Record<string, Operation<C>>>,
  { request: { method, headers }, query }: C,
): Operation<C> {
  const named = [...query.keys()].filter((name) => SUBRESOURCES.has(name))
  // Objects have one version only, whose ID is `null`.
  const subresources =
    query.get('versionId') === 'null' ? named.filter((name) => name !== 'versionId') : named
  const isCopy = method === 'PUT' && headers.has('x-amz-copy-source')
  const name = [method, ...subresources, ...(isCopy ? ['copy'] : [])].join(' ')
  const operation = operations[name]
  if (operation !== undefined) return operation
  if (!METHODS.includes(method)) throw new S3Fault('MethodNotAllowed')
  throw new S3Fault('NotImplemented', name)
}
