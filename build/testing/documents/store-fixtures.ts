/** What the tests of a document store share: documents, their index entries, a model to compare. */

import { indexKey } from '../../../src/documents/keys.ts'
import type {
  DocumentStore,
  DocumentWrite,
  EntryWrite,
  IndexDefinition,
  OperationRecord,
  PhysicalIndex,
  PruneRequest,
  RangeResult,
} from '../../../src/documents/store.ts'
import type { MaybePromise } from '../../../src/system/maybe-promise.ts'
import { encodeStored } from '../../../src/value/stored.ts'
import type { Value, ValueObject } from '../../../src/value/values.ts'

export interface ModelVersion {
  readonly sequence: number
  /** Null is a tombstone. */
  readonly fields: ValueObject | null
}

export interface ModelDocument {
  readonly id: string
  readonly table: string
  readonly createdAtMicros: bigint
  readonly versions: ModelVersion[]
}

export interface StoreHarness {
  /** Opens the same data each time; a store that is open must be closed before. */
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

/** A transaction log in memory that also writes to a store: the reads of both must agree. */
export class Model {
  readonly documents = new Map<string, ModelDocument>()
  sequence = 0

  /** The write that makes a document `fields` at the next sequence, with its index entries. */
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

  /** Commits writes that were made by `write`, as one transaction. */
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

/** Makes the index of each definition and fills it. */
export async function builtIndexes(
  store: DocumentStore,
  definitions: readonly IndexDefinition[],
): Promise<readonly PhysicalIndex[]> {
  const indexes = await store.ensureIndexes(definitions)
  for (const index of indexes) await store.buildIndex(index.id)
  return indexes.map(({ id }) => store.listIndexes().find((index) => index.id === id)!)
}

/** All of an index at a snapshot. */
export function whole(index: number, snapshot: number) {
  const bounds = { lower: '', upper: '\xff', order: 'asc' as const }
  return { index, snapshot, ...bounds, limit: 100_000, textUnitsMax: EVERYTHING }
}

/** A range as plain objects: a store may make its keys when they are asked for. */
export async function found(answer: MaybePromise<RangeResult>): Promise<RangeResult> {
  const { documents, exhausted } = await answer
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

/** All that is replaced, and no operation record. */
export function everythingGone(rowsMax: number): PruneRequest {
  const beforeMicros = BigInt(EVERYTHING)
  return { oldestSnapshot: EVERYTHING, beforeMicros, operationsBeforeMicros: 0n, rowsMax }
}
