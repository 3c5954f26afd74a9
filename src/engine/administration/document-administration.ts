/**
 * Reads and writes of documents by operators, without a Function. Writes are Mutations that the
 * server performs itself: they check schema and unique indexes, are committed like all others, and
 * happen once for an operation ID.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { decodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { MutationOutcome } from '../invocations/mutations.ts'
import { ADMINISTERED_PAGE_BYTES_MAX } from '../limits.ts'
import type { Release } from '../releases/executable-release.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'
import { intervalOf, namedIndex, type RangeInput } from '../transactions/ranges.ts'
import type { Transaction } from '../transactions/transaction.ts'
import {
  type AdministrationPort,
  checkInserted,
  checkValue,
  definitionOf,
  FUNCTION_PREFIX,
  invalid,
  requireTable,
  within,
} from './administration-port.ts'
import { type DocumentImportRequest, type ImportOutcome, importOnce } from './document-imports.ts'
import { type CompactionOutcome, type CompactionRequest, compactOnce } from './table-compactions.ts'

export interface AdministeredDocument {
  readonly id: string
  readonly table: string
  /** Sequence of the commit that wrote this version. */
  readonly revision: number
  readonly createdAtMicros: bigint
  /** The author's fields, as the Release sees them. */
  readonly value: ValueObject
  /** Number of stored fields that the Release does not see. */
  readonly hiddenFields: number
}

export interface DocumentQuery extends Pick<RangeInput, 'table' | 'index' | 'order' | 'limit'> {
  /** The fields that `equal` compares; they must be the first ones of the index. */
  readonly equalFields: readonly string[]
  readonly equal: RangeInput['equal']
  readonly field: string | undefined
  readonly lower: RangeInput['lower']
  readonly upper: RangeInput['upper']
  /** A cursor of the page before. */
  readonly after: string | undefined
}

export interface DocumentPage {
  readonly documents: readonly AdministeredDocument[]
  /** The cursor of the next page; null for the last one. */
  readonly next: string | null
  readonly snapshotSequence: number
}

export type DocumentChange = { readonly table: string; readonly documentId: string } & (
  | { readonly kind: 'insert'; readonly createdAtMicros: bigint; readonly value: ValueObject }
  | { readonly kind: 'replace'; readonly expectedRevision: number; readonly value: ValueObject }
  | { readonly kind: 'delete'; readonly expectedRevision: number }
)

export interface DocumentChangeRequest {
  readonly operationId: string
  /** Identifies the operator and all that an exact repeat has in common. */
  readonly fingerprint: string
  readonly change: DocumentChange
  readonly requestId: string
  /** The span that causes the change; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
}

export interface ChangedDocument {
  /** The version that was written; for a deletion, the one before. */
  readonly document: AdministeredDocument
  readonly replayed: boolean
  readonly commitSequence: number
}

export interface DocumentAdministration {
  /** Throws PRODUCT_NOT_FOUND for an unknown table, PRODUCT_INVALID for bounds that do not fit. */
  query(release: Release, query: DocumentQuery): Promise<DocumentPage>
  /** Returns null for no document. Throws PRODUCT_NOT_FOUND for an unknown table. */
  read(release: Release, table: string, id: string): Promise<AdministeredDocument | null>
  /**
   * Throws PRODUCT_NOT_FOUND, PRODUCT_INVALID for fields that violate the schema,
   * PRODUCT_CAS_CONFLICT for another revision, PRODUCT_STATE_CONFLICT for an ID that exists and a
   * violated unique index, PRODUCT_OPERATION_REUSED, PLATFORM_BODY_TOO_LARGE and
   * PRODUCT_UNAVAILABLE.
   */
  change(release: Release, request: DocumentChangeRequest): Promise<ChangedDocument>
  /** Throws as `change` does; PRODUCT_STATE_CONFLICT for an ID that exists with other fields. */
  import(release: Release, request: DocumentImportRequest): Promise<ImportOutcome>
  /**
   * Removes fields that no Release in use declares from some documents. Throws as `change` does;
   * PRODUCT_STATE_CONFLICT while another compaction of the table runs.
   */
  compact(release: Release, request: CompactionRequest): Promise<CompactionOutcome>
  /** Returns whether the change with this operation ID was committed. */
  isCommitted(operationId: string): Promise<boolean>
}

export function documentAdministration(port: AdministrationPort): DocumentAdministration {
  return {
    async query(release, query) {
      return within(port, release, (prepared) => queryPage(port, prepared, query))
    },
    async read(release, name, id) {
      return within(port, release, async (prepared) => {
        const table = requireTable(prepared, name)
        return pinned(port, async () => {
          const found = await port.store.read(id, port.committer.durable)
          return found === null ? null : documentOf(table, found)
        })
      })
    },
    async change(release, request) {
      return within(port, release, (prepared) => changeOnce(port, prepared, request))
    },
    async import(release, request) {
      return within(port, release, (prepared) => importOnce(port, prepared, request))
    },
    async compact(release, request) {
      return within(port, release, (prepared) => compactOnce(port, prepared, request))
    },
    async isCommitted(operationId) {
      return (await port.store.operation(operationId)) !== null
    },
  }
}

async function pinned<T>({ committer }: AdministrationPort, read: () => Promise<T>): Promise<T> {
  const pin = committer.pinSnapshot()
  try {
    return await read()
  } finally {
    committer.unpinSnapshot(pin)
  }
}

async function queryPage(
  port: AdministrationPort,
  prepared: PreparedRelease,
  { after, ...query }: DocumentQuery,
): Promise<DocumentPage> {
  const table = requireTable(prepared, query.table)
  const physical = namedIndex(table, query.index)
  if (query.equalFields.some((field, i) => field !== physical.fields[i])) {
    throw invalid('range', `fields in the order of the index: ${physical.fields.join(', ')}`)
  }
  const list = JSON.stringify([FUNCTION_PREFIX, query.table, physical.fields, query.equal])
  const afterKey = after === undefined ? undefined : port.cursors.open(list, after)
  if (afterKey === null) throw invalid('after', 'a cursor of the page before')
  const { lower, upper } = intervalOf(table, physical, { ...query, afterKey })
  return pinned(port, async () => {
    const snapshot = port.committer.durable
    const { documents, exhausted } = await port.store.range({
      index: physical.id,
      lower,
      upper,
      order: query.order,
      limit: query.limit,
      snapshot,
      textUnitsMax: ADMINISTERED_PAGE_BYTES_MAX,
    })
    const last = documents.at(-1)
    return {
      documents: documents.map(({ document }) => documentOf(table, document)),
      next: exhausted || last === undefined ? null : port.cursors.seal(list, last.key),
      snapshotSequence: snapshot,
    }
  })
}

async function changeOnce(
  port: AdministrationPort,
  prepared: PreparedRelease,
  { operationId, fingerprint, change, requestId, trace }: DocumentChangeRequest,
): Promise<ChangedDocument> {
  const table = requireTable(prepared, change.table)
  if (change.kind === 'insert') checkInserted(table, change.value)
  if (change.kind === 'replace') checkValue(table, change.value)
  const outcome = await port.mutations.invoke({
    prepared,
    definition: definitionOf(change.kind),
    argumentsText: sha256Hex(fingerprint),
    principal: null,
    context: { requestId, invocationId: port.system.ids.make('ivc') },
    trace,
    operationId,
    target: FUNCTION_PREFIX,
    caller: FUNCTION_PREFIX,
    perform: (transaction) => perform(transaction, change),
  })
  return changedDocument(change, outcome)
}

/** Returns the document without its revision, which the commit decides, as JSON. */
async function perform(transaction: Transaction, change: DocumentChange): Promise<string> {
  const { documentId } = change
  const before = await transaction.get(documentId)
  if (change.kind === 'insert') {
    const { createdAtMicros, value: fields } = change
    await transaction.insertAs(documentId, { createdAtMicros, fields })
    return recordText(transaction, documentId, null)
  }
  if (before === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: 'document' })
  if (before.sequence !== change.expectedRevision) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `the revision is ${before.sequence}` })
  }
  if (change.kind === 'delete') {
    const record = await recordText(transaction, documentId, before.sequence)
    await transaction.delete(documentId)
    return record
  }
  await transaction.update(documentId, () => change.value)
  return recordText(transaction, documentId, null)
}

/** The document that a change wrote or deleted, as its operation record has it. */
interface ChangeRecord {
  readonly createdAtMicros: string
  readonly revision: number | null
  readonly text: string
  /** Absent where nothing is hidden. */
  readonly hiddenFields?: number
}

async function recordText(
  transaction: Transaction,
  id: string,
  revision: number | null,
): Promise<string> {
  const { createdAtMicros, text } = (await transaction.get(id))!
  const hiddenFields = await transaction.countHidden(id)
  const record: ChangeRecord = {
    createdAtMicros: String(createdAtMicros),
    revision,
    text,
    ...(hiddenFields > 0 && { hiddenFields }),
  }
  return JSON.stringify(record)
}

function changedDocument(
  { table, documentId }: DocumentChange,
  { resultText, commitSequence, replayed }: MutationOutcome,
): ChangedDocument {
  const record = JSON.parse(resultText) as ChangeRecord
  const { createdAtMicros, revision, text, hiddenFields = 0 } = record
  const document = {
    id: documentId,
    table,
    revision: revision ?? commitSequence!,
    createdAtMicros: BigInt(createdAtMicros),
    value: decodeStored(text) as ValueObject,
    hiddenFields,
  }
  return { document, replayed, commitSequence: commitSequence! }
}

function documentOf(
  { manifest, projection }: PreparedTable,
  { id, sequence, createdAtMicros, text }: StoredDocument,
): AdministeredDocument {
  const stored = decodeStored(text) as ValueObject
  return {
    id,
    table: manifest.name,
    revision: sequence,
    createdAtMicros,
    value: projection === null ? stored : projection.fields.read(stored),
    hiddenFields: projection === null ? 0 : projection.fields.countHidden(stored),
  }
}
