/** Data Admin: operators query, read and write documents by the schema of a target. */
import { CatalogQuery } from '../catalogs.ts'
import {
  DataQuery,
  DOCUMENT_BODY_BYTES_MAX,
  DocumentChanged,
  DocumentDelete,
  DocumentImport,
  DocumentInsert,
  DocumentPage,
  DocumentRead,
  DocumentReplace,
  DocumentsCompact,
  DocumentsCompacted,
  DocumentsImported,
} from '../data.ts'
import { environmentOperation } from './operation.ts'

/** Bytes of a page of documents: 4 MiB as stored, and what the notation adds. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024

const READ_ERRORS = ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED'] as const
const WRITE_ERRORS = [
  ...READ_ERRORS,
  'PRODUCT_CAS_CONFLICT',
  'PRODUCT_STATE_CONFLICT',
  'PRODUCT_UNAVAILABLE',
] as const

export const queryDocuments = environmentOperation({
  method: 'POST',
  path: '/data/query',
  name: 'queryDocuments',
  summary: 'Lists documents of a table in the order of an index.',
  capability: 'data:read',
  body: { schema: DataQuery },
  replay: 'safe',
  replies: { 200: DocumentPage },
  errors: READ_ERRORS,
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const readDocument = environmentOperation({
  method: 'GET',
  path: '/data/documents/:table/:documentId',
  name: 'readDocument',
  summary: 'One document.',
  capability: 'data:read',
  query: CatalogQuery,
  replies: { 200: DocumentRead },
  errors: READ_ERRORS,
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const insertDocument = environmentOperation({
  method: 'POST',
  path: '/data/documents/:table',
  name: 'insertDocument',
  summary: 'Inserts a document with an ID that the caller chose.',
  capability: 'data:write',
  operationId: 'required',
  body: { schema: DocumentInsert, bytesMax: DOCUMENT_BODY_BYTES_MAX },
  replies: { 201: DocumentChanged },
  errors: WRITE_ERRORS,
})

export const replaceDocument = environmentOperation({
  method: 'PUT',
  path: '/data/documents/:table/:documentId',
  name: 'replaceDocument',
  summary: 'Replaces all fields of a document.',
  capability: 'data:write',
  operationId: 'required',
  body: { schema: DocumentReplace, bytesMax: DOCUMENT_BODY_BYTES_MAX },
  replies: { 200: DocumentChanged },
  errors: WRITE_ERRORS,
})

export const deleteDocument = environmentOperation({
  method: 'DELETE',
  path: '/data/documents/:table/:documentId',
  name: 'deleteDocument',
  summary: 'Deletes a document.',
  capability: 'data:write',
  operationId: 'required',
  body: { schema: DocumentDelete },
  replies: { 200: DocumentChanged },
  errors: WRITE_ERRORS,
})

export const importDocuments = environmentOperation({
  method: 'POST',
  path: '/data/import',
  name: 'importDocuments',
  summary: 'Inserts documents in one commit; those that exist with equal fields stay.',
  capability: 'data:write',
  operationId: 'required',
  body: { schema: DocumentImport, bytesMax: DOCUMENT_BODY_BYTES_MAX },
  replies: { 200: DocumentsImported },
  errors: WRITE_ERRORS,
})

export const compactDocuments = environmentOperation({
  method: 'POST',
  path: '/data/compact',
  name: 'compactDocuments',
  summary: 'Removes fields that no Release in use declares from the next documents of a table.',
  capability: 'data:write',
  operationId: 'required',
  body: { schema: DocumentsCompact },
  replies: { 200: DocumentsCompacted },
  errors: WRITE_ERRORS,
})

export const dataOperations = {
  queryDocuments,
  readDocument,
  insertDocument,
  replaceDocument,
  deleteDocument,
  importDocuments,
  compactDocuments,
}
