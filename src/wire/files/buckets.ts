/** Buckets, storage keys and objects (contract/wire.md, Buckets and storage keys). */
import { BUCKET_NAME, isObjectKey } from '../../value/files/files.ts'
import {
  documented,
  idField,
  listUpTo,
  Micros,
  Name,
  PAGE_MAX,
  PageLimit,
  Revision,
  secretUpTo,
  text,
  textUpTo,
  U64,
} from '../fields.ts'
import { OperationField } from '../idempotency-records.ts'
import { type Infer, schema } from '../schema.ts'

const Bytes = schema([U64, '|', 'null'])

const BucketConfiguration = schema({
  name: documented(textUpTo(63), {
    pattern: BUCKET_NAME.source,
    description: '3 to 63 lower-case letters, digits and hyphens',
  }),
  /** Bytes of all files of the bucket; null for no bound. */
  quotaBytes: Bytes,
  /** Bytes of one file; null for no bound of the bucket. */
  maximumObjectBytes: Bytes,
})

export const BucketCreate = schema({ configuration: BucketConfiguration, changedAtMicros: Micros })
export const BucketReplace = schema({
  configuration: BucketConfiguration,
  expectedRevision: Revision,
  changedAtMicros: Micros,
})
export const BucketArchive = schema({ expectedRevision: Revision, changedAtMicros: Micros })

const BUCKET = {
  bucketId: idField('bkt'),
  lifecycle: "'active' | 'archived'",
  revision: U64,
  configuration: BucketConfiguration,
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
} as const

/** Files and bytes of a bucket; null while the server counts them after a start. */
const Usage = schema([{ files: U64, bytes: U64 }, '|', 'null'])

export const BucketRead = schema({ version: '1', ...BUCKET, usage: Usage })
export type BucketRead = Infer<typeof BucketRead>

export const BucketChanged = schema({ version: '1', ...BUCKET, operation: OperationField })
export type BucketChanged = Infer<typeof BucketChanged>

export const BucketsQuery = schema({ 'limit?': PageLimit, 'after?': idField('bkt') })
export const BucketPage = schema({
  version: '1',
  items: listUpTo(schema({ ...BUCKET, usage: Usage }), PAGE_MAX),
  next: [idField('bkt'), '|', 'null'],
})
export type BucketPage = Infer<typeof BucketPage>

const Access = schema("'read' | 'write'")

export const StorageKeyIssue = schema({ name: Name, access: Access, changedAtMicros: Micros })
export const StorageKeyChange = schema({ changedAtMicros: Micros })

const StorageKeyField = schema({
  storageKeyId: idField('stk'),
  bucketId: idField('bkt'),
  accessKeyId: idField('stk'),
  name: Name,
  access: Access,
  state: "'active' | 'revoked'",
  replaces: [idField('stk'), '|', 'null'],
  createdAtMicros: Micros,
  revokedAtMicros: [Micros, '|', 'null'],
})
export type StorageKeyField = Infer<typeof StorageKeyField>

export const StorageKeyIssued = schema({
  version: '1',
  storageKeyId: idField('stk'),
  accessKeyId: idField('stk'),
  /** Null for a repeat. */
  secretAccessKey: [secretUpTo(64), '|', 'null'],
  secretShownOnce: 'boolean',
  replayed: 'boolean',
})
export type StorageKeyIssued = Infer<typeof StorageKeyIssued>

export const StorageKeyRevoked = schema({
  version: '1',
  storageKey: StorageKeyField,
  operation: OperationField,
})
export type StorageKeyRevoked = Infer<typeof StorageKeyRevoked>

export const StorageKeysQuery = schema({ 'limit?': PageLimit, 'after?': idField('stk') })
export const StorageKeyPage = schema({
  version: '1',
  items: listUpTo(StorageKeyField, PAGE_MAX),
  next: [idField('stk'), '|', 'null'],
})
export type StorageKeyPage = Infer<typeof StorageKeyPage>

/** An object key in a path, percent-encoded whole: `a%2Fb` and `a/b` are the same key. */
export const ObjectKey = documented(
  schema([['string', ':', isObjectKey], '@', '1 to 1,024 bytes of UTF-8 without NUL']),
  { minLength: 1, maxLength: 1_024 },
)

const ObjectField = schema({
  key: ObjectKey,
  fileId: idField('fil'),
  contentType: textUpTo(255),
  size: U64,
  sha256: text(/^[0-9a-f]{64}$/, '64 lowercase hex characters'),
  createdAtMicros: Micros,
})
export type ObjectField = Infer<typeof ObjectField>

export const ObjectsQuery = schema({
  'prefix?': textUpTo(1_024),
  'limit?': PageLimit,
  /** `next` of the page before. */
  'after?': text(/^[A-Za-z0-9_-]{1,5600}$/, 'the next of the page before'),
})
export const ObjectPage = schema({
  version: '1',
  items: listUpTo(ObjectField, PAGE_MAX),
  next: ['string', '|', 'null'],
})
export type ObjectPage = Infer<typeof ObjectPage>

export const ObjectChanged = schema({
  version: '1',
  object: ObjectField,
  operation: OperationField,
})
export type ObjectChanged = Infer<typeof ObjectChanged>
