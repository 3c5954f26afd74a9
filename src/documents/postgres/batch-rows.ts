/** Collects the rows that a batch adds and changes, column by column, for one statement. */
import { assert } from '../../errors/assert.ts'
import { binaryString } from '../../system/binary-strings.ts'
import { LIVE_UNTIL, microsColumn } from '../column-values.ts'
import type { IndexRow, IndexTable } from '../index-rows.ts'
import type { EntryWrite, OperationRecord, TransactionWrite } from '../store.ts'

/** Characters of one statement. A larger batch is sent in several, inside one transaction. */
const PART_CHARACTERS_MAX = 4 * 1024 * 1024

/** The values of one column, one per row. */
type Column<T> = T[]

/** Index entries that start or end. */
interface Entries {
  readonly index: Column<number>
  /** Binary strings. */
  readonly key: Column<string>
}

export interface BatchRows {
  latestSequence: number
  atMicros: number
  readonly documents: {
    readonly id: Column<string>
    readonly sequence: Column<number>
    readonly createdAt: Column<number>
    readonly text: Column<string | null>
  }
  /** Live entries that end at a sequence. In a ready index all of them exist. */
  readonly ended: Entries & {
    readonly sequence: Column<number>
    readonly ready: Column<boolean>
    readyCount: number
  }
  /** Entries that start, with the snapshots that see them. */
  readonly started: Entries & { readonly from: Column<number>; readonly until: Column<number> }
  readonly operations: {
    readonly id: Column<string>
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
}

/** Splits a batch into one part, or more where the texts are long. Asserts ascending sequences. */
export function batchParts(
  transactions: readonly TransactionWrite[],
  { latestSequence, indexes }: BatchContext,
): readonly BatchRows[] {
  const parts: BatchRows[] = []
  let part: PartBuilder | null = null
  let latest = latestSequence
  for (const transaction of transactions) {
    if (part === null || part.characters > PART_CHARACTERS_MAX) {
      part = new PartBuilder(indexes, latest)
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
  /** The row in `started` of each key that is live; -1 where this part ended it. */
  readonly #rowsOfKeys = new Map<number, Map<string, number>>()

  constructor(indexes: Pick<IndexTable, 'get'>, latestSequence: number) {
    this.#indexes = indexes
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
        rows.documents.id.push(id)
        rows.documents.sequence.push(sequence)
        rows.documents.createdAt.push(microsColumn(createdAtMicros))
        rows.documents.text.push(text)
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
      rows.set(key, this.#start(id, key, sequence))
      return
    }
    assert(row !== -1, contradiction)
    rows.set(key, -1)
    if (row === undefined) this.#end(index, key, sequence)
    else this.rows.started.until[row] = sequence
  }

  #start(index: number, key: string, sequence: number): number {
    const { started } = this.rows
    started.key.push(key)
    started.from.push(sequence)
    started.until.push(LIVE_UNTIL)
    this.characters += key.length
    return started.index.push(index) - 1
  }

  #end({ id, state }: IndexRow, key: string, sequence: number): void {
    const { ended } = this.rows
    ended.index.push(id)
    ended.key.push(key)
    ended.sequence.push(sequence)
    // A building index may not have the old key of a document yet.
    ended.ready.push(state === 'ready')
    if (state === 'ready') ended.readyCount += 1
    this.characters += key.length
  }

  #addOperation(record: OperationRecord): void {
    const { operations } = this.rows
    operations.id.push(record.operationId)
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
