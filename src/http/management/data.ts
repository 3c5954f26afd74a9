/** Data Admin: operators query, read and write documents by the schema of a target. */
import type {
  AdministeredDocument,
  ChangedDocument,
  DocumentChange,
  DocumentQuery,
} from '../../engine/administration/document-administration.ts'
import { Fault } from '../../errors/fault.ts'
import {
  changeDocument,
  compactDocuments,
  importDocuments,
  queryDocuments,
  readDocument,
} from '../../product/data-admin/documents.ts'
import type { OperationId } from '../../value/ids.ts'
import { encodeStored } from '../../value/stored.ts'
import type { Json } from '../../value/strict-json.ts'
import { decodeTagged, encodeTagged } from '../../value/tagged.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import type {
  DataQuery,
  DocumentChanged,
  DocumentField,
  DocumentPage,
  DocumentRead,
  DocumentsCompacted,
  DocumentsImported,
} from '../../wire/data.ts'
import { PAGE_DEFAULT } from '../../wire/fields.ts'
import type { OperationField } from '../../wire/idempotency-records.ts'
import { dataOperations } from '../../wire/operations/data.ts'
import type { Infer } from '../../wire/schema.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const dataRoutes: readonly Route<ProductApp>[] = bind(dataOperations, {
  async queryDocuments({ app, body: query }) {
    const page = await queryDocuments(app.product, query.target, queryOf(query))
    const body: DocumentPage = {
      version: 1,
      releaseId: page.releaseId,
      items: page.documents.map(documentField),
      next: page.next,
      snapshotSequence: String(page.snapshotSequence),
    }
    return { status: 200, body }
  },

  async readDocument({ app, params, query }) {
    const document = await readDocument(app.product, query.target, params)
    const body: DocumentRead = { version: 1, document: documentField(document) }
    return { status: 200, body }
  },

  async insertDocument({
    app,
    actor,
    params: { table },
    operationId,
    body: asked,
    requestId,
    trace,
  }) {
    const { target, documentId, value } = asked
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const change: DocumentChange = {
      kind: 'insert',
      table,
      documentId,
      createdAtMicros: changedAtMicros,
      value: fieldsOf(value as Json),
    }
    const input = { operationId, target, change, changedAtMicros, requestId, trace }
    const changed = await changeDocument(app.product, actor, input)
    return { status: 201, body: changedBody(change, operationId, changed, asked) }
  },

  async replaceDocument({ app, actor, params, operationId, body: asked, requestId, trace }) {
    const { target, value } = asked
    const expectedRevision = Number(asked.expectedRevision)
    const change: DocumentChange = {
      kind: 'replace',
      ...namesOf(params),
      expectedRevision,
      value: fieldsOf(value as Json),
    }
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { operationId, target, change, changedAtMicros, requestId, trace }
    const changed = await changeDocument(app.product, actor, input)
    return { status: 200, body: changedBody(change, operationId, changed, asked) }
  },

  async deleteDocument({ app, actor, params, operationId, body: asked, requestId, trace }) {
    const expectedRevision = Number(asked.expectedRevision)
    const change: DocumentChange = { kind: 'delete', ...namesOf(params), expectedRevision }
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { operationId, target: asked.target, change, changedAtMicros, requestId, trace }
    const changed = await changeDocument(app.product, actor, input)
    return { status: 200, body: changedBody(change, operationId, changed, asked) }
  },

  async importDocuments({ app, actor, operationId, body: asked, requestId, trace }) {
    const { target, table } = asked
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const documents = asked.documents.map(({ documentId, value }, i) => {
      return { documentId, value: fieldsOf(value as Json, `documents[${i}].value`) }
    })
    const input = { operationId, target, table, documents, changedAtMicros, requestId, trace }
    const { inserted, unchanged, replayed, commitSequence } = await importDocuments(
      app.product,
      actor,
      input,
    )
    const operation: OperationField = {
      version: 1,
      operationId,
      kind: 'document.import',
      outcome: 'applied',
      replayed,
      revision: String(commitSequence ?? 0),
      createdAtMicros: asked.changedAtMicros,
    }
    const body: DocumentsImported = { version: 1, inserted, unchanged, operation }
    return { status: 200, body }
  },

  async compactDocuments({ app, actor, operationId, body: asked, requestId, trace }) {
    const { target, table, dryRun, after } = asked
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { operationId, target, table, dryRun, after, changedAtMicros, requestId, trace }
    const compacted = await compactDocuments(app.product, actor, input)
    const { read, changed, removedFields, next, replayed, commitSequence } = compacted
    const operation: OperationField = {
      version: 1,
      operationId,
      kind: 'document.compact',
      outcome: 'applied',
      replayed,
      revision: String(commitSequence ?? 0),
      createdAtMicros: asked.changedAtMicros,
    }
    const body: DocumentsCompacted = { version: 1, read, changed, removedFields, next, operation }
    return { status: 200, body }
  },
})

function namesOf({ table, documentId }: { readonly table: string; readonly documentId: string }) {
  return { table, documentId }
}

/** Throws PRODUCT_INVALID for bounds in another order than an index can serve. */
function queryOf(asked: Infer<typeof DataQuery>): DocumentQuery {
  const bounds = (asked.range ?? []).map(({ field, op, value }) => {
    return { field, op, value: JSON.parse(encodeStored(decodeTagged(value as Json))) as unknown }
  })
  const equal = bounds.filter(({ op }) => op === 'eq')
  const others = bounds.slice(equal.length)
  const [lower, ...lowers] = others.filter(({ op }) => op === 'gt' || op === 'gte')
  const [upper, ...uppers] = others.filter(({ op }) => op === 'lt' || op === 'lte')
  const field = (lower ?? upper)?.field
  const isOrdered =
    others.every(({ op, field: each }) => op !== 'eq' && each === field) &&
    lowers.length + uppers.length === 0
  if (!isOrdered) {
    const rule = 'equal values in the order of the index, then bounds of its next field'
    throw new Fault('PRODUCT_INVALID', { violations: [{ path: 'range', rule }] })
  }
  return {
    table: asked.table,
    index: asked.index ?? null,
    order: asked.order ?? 'asc',
    limit: asked.limit ?? PAGE_DEFAULT,
    after: asked.after,
    field,
    equalFields: equal.map(({ field: each }) => each),
    equal: equal.map(({ value }) => value),
    lower: lower && { value: lower.value, inclusive: lower.op === 'gte' },
    upper: upper && { value: upper.value, inclusive: upper.op === 'lte' },
  }
}

function fieldsOf(json: Json, path = 'value'): ValueObject {
  const value = decodeTagged(json, path)
  if (!(value instanceof Map)) throw new ValidationError('an object value', path)
  return value as ValueObject
}

function documentField({
  id,
  table,
  revision,
  createdAtMicros,
  value,
  hiddenFields,
}: AdministeredDocument): DocumentField {
  return {
    id,
    table,
    revision: String(revision),
    createdAtMicros: String(createdAtMicros),
    value: JSON.parse(encodeTagged(value)) as unknown,
    ...(hiddenFields > 0 && { hiddenFields }),
  }
}

function changedBody(
  { kind }: DocumentChange,
  operationId: OperationId,
  { document, replayed, commitSequence }: ChangedDocument,
  { changedAtMicros }: { readonly changedAtMicros: string },
): DocumentChanged {
  return {
    version: 1,
    document: documentField(document),
    operation: {
      version: 1,
      operationId,
      kind: `document.${kind}`,
      outcome: 'applied',
      replayed,
      revision: String(commitSequence),
      createdAtMicros: changedAtMicros,
    },
  }
}
