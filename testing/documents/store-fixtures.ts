/** Fixtures of document store tests: documents, their index entries, and a reference model. */

import { indexKey } from '../../src/documents/keys.ts'
import type {
  DocumentStore,
  DocumentWrite,
  EntryWrite,
  IndexDefinition,
  OperationRecord,
  PhysicalIndex,
  PruneRequest,
  RangeResult,
} from '../../src/documents/store.ts'
import type { MaybePromise } from '../../src/system/maybe-promise.ts'
import { encodeStored } from '../../src/value/stored.ts'
import type { Value, ValueObject } from '../../src/value/values.ts'

export interface ModelVersion {
  readonly sequence: number
  /** Null for a tombstone. */
  readonly fields: ValueObject | null
}

export interface ModelDocument {
  readonly id: string
  readonly table: string
  readonly createdAtMicros: bigint
  readonly versions: ModelVersion[]
}

export interface StoreHarness {
  /** Opens the same data each time. An open store must be closed before. */
  open(): Promise<DocumentStore>
  dispose(): Promise<void>
}

export interface StoreContext {
  harness: StoreHarness
  store: DocumentStore
  model: Model
}

export const EVERYTHING = Number.MAX_SAFE_INTEGER

export const CREATION: IndexDefinition = { table: 'messages', fields: [] }
export const BY_CHANNEL: IndexDefinition = { table: 'messages', fields: ['channel'] }

export function documentId(table: string, number: number): string {
  return `${table}_${String(number).padStart(26, '0')}`
}

export function operationRecord(number: number, more: Partial<OperationRecord> = {}) {
  return {
    operationId: documentId('opn', number),
    fingerprint: Uint8Array.of(1, 2, number % 256),
    commitSequence: null,
    releaseId: documentId('rel', 1),
    function: 'messages.send',
    result: '{"type":"null"}',
    attempts: 1,
    createdAtMicros: 1_000n,
    ...more,
  } satisfies OperationRecord
}

/** A model with all versions in memory. Its reads must equal those of the store. */
export class Model {
  readonly documents = new Map<string, ModelDocument>()
  sequence = 0

  /** Creates the write that sets the fields of a document, with its index entries. */
  write(
    indexes: readonly PhysicalIndex[],
    document: { table: string; number: number },
    fields: ValueObject | null,
  ): DocumentWrite {
    const id = documentId(document.table, document.number)
    const createdAtMicros = BigInt(document.number) * 10n
    const known = this.documents.get(id)
    const before = known?.versions.at(-1)?.fields ?? null
    const model = known ?? { id, table: document.table, createdAtMicros, versions: [] }
    model.versions.push({ sequence: this.sequence + 1, fields })
    this.documents.set(id, model)
    const text = fields === null ? null : encodeStored(fields)
    return { id, createdAtMicros, text, entries: entries(indexes, model, before, fields) }
  }

  /** Commits writes that `write` created as one transaction. */
  async commit(store: DocumentStore, writes: readonly DocumentWrite[], atMicros = 0n) {
    this.sequence += 1
    await store.commit({ transactions: [{ sequence: this.sequence, atMicros, writes }] })
  }

  read(id: string, snapshot: number) {
    const document = this.documents.get(id)
    const version = document?.versions.findLast(({ sequence }) => sequence <= snapshot)
    if (document === undefined || version === undefined || version.fields === null) return null
    const { createdAtMicros } = document
    const text = encodeStored(version.fields)
    return { id, createdAtMicros, sequence: version.sequence, text }
  }

  range(definition: IndexDefinition, snapshot: number, lower = '', upper = '\xff') {
    const found = []
    for (const { id, table, createdAtMicros, versions } of this.documents.values()) {
      const version = versions.findLast(({ sequence }) => sequence <= snapshot)
      if (table !== definition.table || version === undefined || version.fields === null) continue
      const key = indexKey(definition, { id, createdAtMicros, fields: version.fields })
      if (key < lower || key >= upper) continue
      const text = encodeStored(version.fields)
      found.push({ key, document: { id, createdAtMicros, sequence: version.sequence, text } })
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1))
  }
}

function entries(
  indexes: readonly PhysicalIndex[],
  document: ModelDocument,
  before: ValueObject | null,
  after: ValueObject | null,
): EntryWrite[] {
  const { id, table, createdAtMicros } = document
  return indexes.flatMap((index) => {
    if (index.table !== table) return []
    const keyOf = (fields: ValueObject | null) =>
      fields === null ? null : indexKey(index, { id, createdAtMicros, fields })
    const [old, key] = [keyOf(before), keyOf(after)]
    if (old === key) return []
    const lost = old === null ? [] : [{ index: index.id, key: old, live: false }]
    return key === null ? lost : [...lost, { index: index.id, key, live: true }]
  })
}

export function fieldsOf(fields: { readonly [name: string]: Value }): ValueObject {
  return new Map(Object.entries(fields))
}

/** Creates and builds the index of each definition. */
export async function builtIndexes(
  store: DocumentStore,
  definitions: readonly IndexDefinition[],
): Promise<readonly PhysicalIndex[]> {
  const indexes = await store.ensureIndexes(definitions)
  for (const index of indexes) await store.buildIndex(index.id)
  return indexes.map(({ id }) => store.listIndexes().find((index) => index.id === id)!)
}

/** The request for all documents of an index. */
export function whole(index: number, snapshot: number) {
  const bounds = { lower: '', upper: '\xff', order: 'asc' as const }
  return { index, snapshot, ...bounds, limit: 100_000, textUnitsMax: EVERYTHING }
}

/** Converts a range to plain objects, since a store may compute keys lazily. */
export async function found(result: MaybePromise<RangeResult>): Promise<RangeResult> {
  const { documents, exhausted } = await result
  return { documents: documents.map(({ key, document }) => ({ key, document })), exhausted }
}

export async function pruneAll(
  store: DocumentStore,
  request: Partial<PruneRequest>,
): Promise<number> {
  let removed = 0
  for (;;) {
    const result = await store.prune({ ...everythingGone(3), ...request })
    removed += result.removed
    if (!result.more) return removed
  }
}

/** Requests the removal of all replaced versions and of no operation record. */
export function everythingGone(rowsMax: number): PruneRequest {
  const beforeMicros = BigInt(EVERYTHING)
  return { oldestSnapshot: EVERYTHING, beforeMicros, operationsBeforeMicros: 0n, rowsMax }
}
