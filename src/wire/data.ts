/** Data Admin: documents as operators read and write them (contract/wire.md, Data Admin). */
import { FIELD_NAME, INDEX_NAME } from '../value/manifest.ts'
import {
  idField,
  integer,
  listUpTo,
  Micros,
  PAGE_MAX,
  Revision,
  TargetField,
  text,
  U64,
} from './fields.ts'
import { OperationField } from './idempotency-records.ts'
import { TaggedField, TaggedObjectField } from './invocations.ts'
import { type Infer, schema } from './schema.ts'

/** Bytes of a body with one document: 1 MiB as stored takes up to three times that when tagged. */
export const DOCUMENT_BODY_BYTES_MAX = 12 * 1024 * 1024

export const TableName = text(/^[a-z][a-zA-Z0-9]{0,63}$/, 'the name of a table such as messages')
export const DocumentIdField = text(
  /^[a-z][a-zA-Z0-9]{0,63}_[0-7][0-9A-HJKMNP-TV-Z]{25}$/,
  'the ID of a document such as messages_01ARZ3NDEKTSV4RRFFQ69G5FAV',
)

const Bound = schema({
  /** A field of the index; the last bounded one may be _createdAt. */
  field: text(new RegExp(`${FIELD_NAME.source}|^_createdAt$`), 'a field of the index'),
  op: "'eq' | 'gt' | 'gte' | 'lt' | 'lte'",
  value: TaggedField,
})

export const DataQuery = schema({
  target: TargetField,
  table: TableName,
  /** Defaults to the creation order. */
  'index?': text(INDEX_NAME, 'the name of an index of the table'),
  /** Equal values in the order of the index's fields, then up to two bounds of the next field. */
  'range?': [[Bound, '[]'], '&', 'unknown[] <= 18'],
  'order?': "'asc' | 'desc'",
  'limit?': integer(1, PAGE_MAX),
  'after?': 'string <= 8192',
})

export const DocumentField = schema({
  id: DocumentIdField,
  table: TableName,
  /** Sequence of the commit that wrote this version. */
  revision: U64,
  createdAtMicros: Micros,
  /** The author's fields, as the Release of the target sees them. */
  value: TaggedObjectField,
  /** Stored fields that the Release does not declare; absent for none. Writes keep them. */
  'hiddenFields?': integer(1),
})
export type DocumentField = Infer<typeof DocumentField>

export const DocumentPage = schema({
  version: '1',
  releaseId: idField('rel'),
  items: [DocumentField, '[]'],
  /** null on the last page. */
  next: ['string', '|', 'null'],
  snapshotSequence: U64,
})
export type DocumentPage = Infer<typeof DocumentPage>

export const DocumentRead = schema({ version: '1', document: DocumentField })
export type DocumentRead = Infer<typeof DocumentRead>

export const DocumentInsert = schema({
  target: TargetField,
  documentId: DocumentIdField,
  value: TaggedObjectField,
  changedAtMicros: Micros,
})

export const DocumentReplace = schema({
  target: TargetField,
  expectedRevision: Revision,
  value: TaggedObjectField,
  changedAtMicros: Micros,
})

export const DocumentDelete = schema({
  target: TargetField,
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const DocumentChanged = schema({
  version: '1',
  /** The version that was written; for a deletion, the one before. */
  document: DocumentField,
  operation: OperationField,
})
export type DocumentChanged = Infer<typeof DocumentChanged>

/** @limit Data Admin: documents of one import */
export const IMPORTED_DOCUMENTS_MAX = 1_000

export const DocumentImport = schema({
  target: TargetField,
  table: TableName,
  documents: listUpTo(
    schema({ documentId: DocumentIdField, value: TaggedObjectField }),
    IMPORTED_DOCUMENTS_MAX,
  ),
  changedAtMicros: Micros,
})

export const DocumentsImported = schema({
  version: '1',
  inserted: integer(0, IMPORTED_DOCUMENTS_MAX),
  /** Documents that existed with equal fields. */
  unchanged: integer(0, IMPORTED_DOCUMENTS_MAX),
  /** Its revision is the sequence of the commit; 0 where no document was inserted. */
  operation: OperationField,
})
export type DocumentsImported = Infer<typeof DocumentsImported>

/** @limit Data Admin: documents that one request of a compaction reads */
export const COMPACTED_DOCUMENTS_MAX = 500

export const DocumentsCompact = schema({
  target: TargetField,
  table: TableName,
  /** True counts what would be removed, and changes nothing. */
  dryRun: 'boolean',
  /** `next` of the request before; absent for the first documents. */
  'after?': 'string <= 8192',
  changedAtMicros: Micros,
})

export const DocumentsCompacted = schema({
  version: '1',
  /** Documents that the request read. */
  read: integer(0, COMPACTED_DOCUMENTS_MAX),
  /** Documents of these with fields that no Release in use declares. */
  changed: integer(0, COMPACTED_DOCUMENTS_MAX),
  removedFields: integer(0),
  /** null once every document was read. */
  next: ['string', '|', 'null'],
  /** Its revision is the sequence of the commit; 0 where no document was changed. */
  operation: OperationField,
})
export type DocumentsCompacted = Infer<typeof DocumentsCompacted>
