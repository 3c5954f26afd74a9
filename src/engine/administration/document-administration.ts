/**
 * Reads and writes of documents by operators, without a Function. Writes are Mutations that the
 * server performs itself: they check schema and unique indexes, are committed like all others, and
 * happen once for an operation ID.
 */
import type { DocumentStore, StoredDocument } from '../../documents/store.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import type { Committer } from '../commits/committer.ts'
import type { ActiveCalls } from '../invocations/active-calls.ts'
import type { Cursors } from '../invocations/context-operations.ts'
import type { MutationOutcome, Mutations } from '../invocations/mutations.ts'
import { DOCUMENT_EXISTS, INVALID_CURSOR, OperationError } from '../invocations/operation-error.ts'
import { ADMINISTERED_PAGE_BYTES_MAX } from '../limits.ts'
import type { Release } from '../releases/executable-release.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { PreparedTable } from '../releases/prepared-tables.ts'
import { intervalOf, namedIndex, type RangeInput } from '../transactions/ranges.ts'
import type { Transaction } from '../transactions/transaction.ts'

export interface AdministeredDocument {
  readonly id: string
  readonly table: string
  /** Sequence of the commit that wrote this version. */
  readonly revision: number
  readonly createdAtMicros: bigint
  /** The author's fields. */
  readonly value: ValueObject
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
}

export interface ChangedDocument {
  /** As it was written; of a deletion, as it was before. */
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
  /** Whether the change with this operation ID was committed. */
  isCommitted(operationId: string): Promise<boolean>
}

export interface AdministrationPort {
  readonly store: DocumentStore
  readonly committer: Pick<Committer, 'durable' | 'pinSnapshot' | 'unpinSnapshot'>
  readonly preparations: Preparations
  readonly mutations: Mutations
  readonly inFlight: ActiveCalls
  readonly cursors: Cursors
  readonly system: System
}

/** Of every operation record of this kind; applications cannot name a Function with a space. */
const FUNCTION_PREFIX = 'data admin'

export function documentAdministration(port: AdministrationPort): DocumentAdministration {
  return {
    async query(release, query) {
      return within(port, release, (prepared) => queryPage(port, prepared, query))
    },
    async read(release, table, id) {
      return within(port, release, async (prepared) => {
        requireTable(prepared, table)
        return pinned(port, async () => {
          const found = await port.store.read(id, port.committer.durable)
          return found === null ? null : documentOf(table, found)
        })
      })
    },
    async change(release, request) {
      return within(port, release, (prepared) => changeOnce(port, prepared, request))
    },
    async isCommitted(operationId) {
      return (await port.store.operation(operationId)) !== null
    },
  }
}

/** Keeps the resources of the Release while the task runs, and names its failures for operators. */
async function within<T>(
  { inFlight, preparations }: AdministrationPort,
  release: Release,
  task: (prepared: PreparedRelease) => Promise<T>,
): Promise<T> {
  const end = inFlight.begin(release)
  try {
    return await task(await preparations.prepare(release))
  } catch (error) {
    throw operatorFault(error)
  } finally {
    end()
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
      ...{ index: physical.id, lower, upper, order: query.order, limit: query.limit, snapshot },
      textUnitsMax: ADMINISTERED_PAGE_BYTES_MAX,
    })
    const last = documents.at(-1)
    return {
      documents: documents.map(({ document }) => documentOf(query.table, document)),
      next: exhausted || last === undefined ? null : port.cursors.seal(list, last.key),
      snapshotSequence: snapshot,
    }
  })
}

async function changeOnce(
  port: AdministrationPort,
  prepared: PreparedRelease,
  { operationId, fingerprint, change, requestId }: DocumentChangeRequest,
): Promise<ChangedDocument> {
  const table = requireTable(prepared, change.table)
  if (change.kind !== 'delete') checkValue(table, change.value)
  const outcome = await port.mutations.invoke({
    prepared,
    definition: definitionOf(change),
    argumentsText: sha256Hex(fingerprint),
    principal: null,
    context: { requestId, invocationId: port.system.ids.make('ivc') },
    operationId,
    target: FUNCTION_PREFIX,
    caller: FUNCTION_PREFIX,
    perform: (transaction) => perform(transaction, change),
  })
  return changedDocument(change, outcome)
}

/** A Mutation has a definition; this one has no code. */
function definitionOf({ kind }: DocumentChange): FunctionManifest {
  return {
    ...{ name: `${FUNCTION_PREFIX} ${kind}`, kind: 'mutation', visibility: 'internal' },
    ...{ clients: [], auth: 'none', arguments: {}, returns: { type: 'any' }, errors: {} },
  }
}

/** Returns the document without its revision, which the commit decides, as JSON. */
async function perform(transaction: Transaction, change: DocumentChange): Promise<string> {
  const { documentId } = change
  const before = await transaction.get(documentId)
  if (change.kind === 'insert') {
    const { createdAtMicros } = change
    const fields = JSON.parse(encodeStored(change.value)) as unknown
    await transaction.insertAs(documentId, { createdAtMicros, fields })
    return recordText(createdAtMicros, null, encodeStored(change.value))
  }
  if (before === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: 'document' })
  if (before.sequence !== change.expectedRevision) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `the revision is ${before.sequence}` })
  }
  if (change.kind === 'delete') {
    await transaction.delete(documentId)
    return recordText(before.createdAtMicros, before.sequence, before.text)
  }
  await transaction.replace(documentId, JSON.parse(encodeStored(change.value)))
  return recordText(before.createdAtMicros, null, encodeStored(change.value))
}

function recordText(createdAtMicros: bigint, revision: number | null, text: string): string {
  return JSON.stringify({ createdAtMicros: String(createdAtMicros), revision, text })
}

function changedDocument(
  { table, documentId }: DocumentChange,
  { resultText, commitSequence, replayed }: MutationOutcome,
): ChangedDocument {
  const { createdAtMicros, revision, text } = JSON.parse(resultText) as {
    createdAtMicros: string
    revision: number | null
    text: string
  }
  const document = {
    ...{ id: documentId, table, revision: revision ?? commitSequence! },
    createdAtMicros: BigInt(createdAtMicros),
    value: decodeStored(text) as ValueObject,
  }
  return { document, replayed, commitSequence: commitSequence! }
}

function requireTable({ tables }: PreparedRelease, name: string): PreparedTable {
  const table = tables.get(name)
  if (table === undefined) throw new Fault('PRODUCT_NOT_FOUND', { detail: 'table' })
  return table
}

function checkValue(table: PreparedTable, value: ValueObject): void {
  try {
    table.check(value, 'value')
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw invalid(error.path, error.rule)
  }
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}

function documentOf(
  table: string,
  { id, sequence, createdAtMicros, text }: StoredDocument,
): AdministeredDocument {
  const value = decodeStored(text) as ValueObject
  return { id, table, revision: sequence, createdAtMicros, value }
}

/** Gives a failure of the engine the code under which an operator sees it. */
function operatorFault(error: unknown): unknown {
  if (error instanceof OperationError) {
    if (error.name === DOCUMENT_EXISTS || error.violated !== null) {
      return new Fault('PRODUCT_STATE_CONFLICT', { detail: error.message, cause: error })
    }
    const path = error.name === INVALID_CURSOR ? 'after' : 'range'
    return new Fault('PRODUCT_INVALID', { violations: [{ path, rule: error.message }] })
  }
  if (isFault(error, 'OPERATION_REUSED')) return new Fault('PRODUCT_OPERATION_REUSED')
  if (isFault(error, 'LIMIT_EXCEEDED')) {
    return new Fault('PLATFORM_BODY_TOO_LARGE', { detail: error.detail, cause: error })
  }
  const passing = ['UNAVAILABLE', 'BUSY', 'WRITE_CONFLICT', 'DEADLINE_EXCEEDED'] as const
  if (isFault(error, ...passing, 'RESULT_UNCERTAIN')) {
    return new Fault('PRODUCT_UNAVAILABLE', { detail: error.detail ?? error.code, cause: error })
  }
  return error
}
