/** Collects the rows that a batch adds and changes, column by column, for one statement. */
import { assert } from '../../errors/assert.ts'
import { binaryString } from '../../system/binary-strings.ts'
import { microsColumn } from '../column-values.ts'
import {
  CompactTables,
  checkedCompactId,
  tableOf,
  ULID_BYTES,
  ulidBytes,
  ulidMicros,
} from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { IndexTable } from '../index-rows.ts'
import type { EntryWrite, IndexRow, OperationRecord, TransactionWrite } from '../store.ts'

/** Characters of one statement. A larger batch is sent in several, inside one transaction. */
const PART_CHARACTERS_MAX = 4 * 1024 * 1024

/** The values of one column, one per row. */
type Column<T> = T[]

/** Index entries that start or end. */
interface Entries {
  readonly index: Column<number>
  readonly key: Column<Buffer>
}

export interface BatchRows {
  latestSequence: number
  atMicros: number
  readonly documents: {
    readonly id: Column<Buffer>
    readonly sequence: Column<number>
    /** Null where it is the time of the ID. */
    readonly createdAt: Column<number | null>
    readonly text: Column<string | null>
  }
  /** Live entries that end at a sequence. In a ready index all of them exist. */
  readonly ended: Entries & {
    readonly sequence: Column<number>
    readonly ready: Column<boolean>
    readyCount: number
  }
  /** Entries that start, with the snapshots that see them; the end is null for live ones. */
  readonly started: Entries & {
    readonly from: Column<number>
    readonly until: Column<number | null>
  }
  readonly operations: {
    readonly id: Column<Buffer>
    /** Binary strings. */
    readonly fingerprint: Column<string>
    readonly sequence: Column<number | null>
    readonly releaseId: Column<string>
    readonly function: Column<string>
    readonly result: Column<string>
    readonly attempts: Column<number>
    readonly createdAt: Column<number>
  }
}

export interface BatchContext {
  readonly latestSequence: number
  readonly indexes: Pick<IndexTable, 'get'>
  readonly texts: CompactTexts
}

const TABLES = new CompactTables()

/** Splits a batch into one part, or more where the texts are long. Asserts ascending sequences. */
export function batchParts(
  transactions: readonly TransactionWrite[],
  { latestSequence, indexes, texts }: BatchContext,
): readonly BatchRows[] {
  const parts: BatchRows[] = []
  let part: PartBuilder | null = null
  let latest = latestSequence
  for (const transaction of transactions) {
    if (part === null || part.characters > PART_CHARACTERS_MAX) {
      part = new PartBuilder(indexes, texts, latest)
      parts.push(part.rows)
    }
    part.add(transaction)
    latest = part.rows.latestSequence
  }
  return parts
}

class PartBuilder {
  readonly rows: BatchRows
  characters = 0
  readonly #indexes: Pick<IndexTable, 'get'>
  readonly #texts: CompactTexts
  /** The row in `started` of each key that is live; -1 where this part ended it. */
  readonly #rowsOfKeys = new Map<number, Map<string, number>>()

  constructor(indexes: Pick<IndexTable, 'get'>, texts: CompactTexts, latestSequence: number) {
    this.#indexes = indexes
    this.#texts = texts
    this.rows = emptyRows(latestSequence)
  }

  add({ sequence, atMicros, writes, operation }: TransactionWrite): void {
    const { rows } = this
    rows.atMicros = microsColumn(atMicros)
    if (sequence !== null) {
      const ascends = Number.isSafeInteger(sequence) && sequence > rows.latestSequence
      assert(ascends, 'sequences do not ascend')
      rows.latestSequence = sequence
      for (const { id, createdAtMicros, text, entries } of writes) {
        const bytes = checkedCompactId(id)
        const micros = microsColumn(createdAtMicros)
        const isTimeOfId = ulidMicros(bytes, bytes.length - ULID_BYTES) === micros
        rows.documents.id.push(bytes)
        rows.documents.sequence.push(sequence)
        rows.documents.createdAt.push(isTimeOfId ? null : micros)
        rows.documents.text.push(text === null ? null : this.#texts.compact(tableOf(id), text))
        this.characters += text?.length ?? 0
        for (const entry of entries) this.#addEntry(entry, sequence)
      }
    }
    if (operation !== undefined) this.#addOperation(operation)
  }

  #addEntry({ index: id, key, live }: EntryWrite, sequence: number): void {
    const index = this.#indexes.get(id)
    // The index was being dropped when the entries were computed.
    if (index === undefined || index.state === 'dropped') return
    let rows = this.#rowsOfKeys.get(id)
    if (rows === undefined) {
      rows = new Map()
      this.#rowsOfKeys.set(id, rows)
    }
    const row = rows.get(key)
    const contradiction = 'an index entry contradicts the ones before it'
    if (live) {
      assert(row === undefined || row === -1, contradiction)
      rows.set(key, this.#start(index, key, sequence))
      return
    }
    assert(row !== -1, contradiction)
    rows.set(key, -1)
    if (row === undefined) this.#end(index, key, sequence)
    else this.rows.started.until[row] = sequence
  }

  #start({ id, table }: IndexRow, key: string, sequence: number): number {
    const { started } = this.rows
    started.key.push(TABLES.of(table).key(key))
    started.from.push(sequence)
    started.until.push(null)
    this.characters += key.length
    return started.index.push(id) - 1
  }

  #end({ id, table, state }: IndexRow, key: string, sequence: number): void {
    const { ended } = this.rows
    ended.index.push(id)
    ended.key.push(TABLES.of(table).key(key))
    ended.sequence.push(sequence)
    // A building index may not have the old key of a document yet.
    ended.ready.push(state === 'ready')
    if (state === 'ready') ended.readyCount += 1
    this.characters += key.length
  }

  #addOperation(record: OperationRecord): void {
    const { operations } = this.rows
    const operationId = ulidBytes(record.operationId)
    assert(operationId !== null, 'an operation ID is not canonical')
    operations.id.push(operationId)
    operations.fingerprint.push(binaryString(record.fingerprint))
    operations.sequence.push(record.commitSequence)
    operations.releaseId.push(record.releaseId)
    operations.function.push(record.function)
    operations.result.push(record.result)
    operations.attempts.push(record.attempts)
    operations.createdAt.push(microsColumn(record.createdAtMicros))
    this.characters += record.result.length
  }
}

function emptyRows(latestSequence: number): BatchRows {
  return {
    latestSequence,
    atMicros: 0,
    documents: { id: [], sequence: [], createdAt: [], text: [] },
    ended: { index: [], key: [], sequence: [], ready: [], readyCount: 0 },
    started: { index: [], key: [], from: [], until: [] },
    operations: {
      id: [],
      fingerprint: [],
      sequence: [],
      releaseId: [],
      function: [],
      result: [],
      attempts: [],
      createdAt: [],
    },
  }
}
