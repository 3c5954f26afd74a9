/**
 * One invocation's view of the documents: reads at a snapshot, its own writes on top, and the read
 * set that the committer checks. Everything a runner asks for arrives here and is not believed.
 */
import { type KeyInterval, keyInterval } from '../documents/keys.ts'
import type { DocumentStore, PhysicalIndex, StoredDocument } from '../documents/store.ts'
import { Fault } from '../errors/fault.ts'
import { encodeUlid, type IdSource, tableOfId } from '../value/ids.ts'
import { Malformed } from '../value/malformed.ts'
import { decodeStored, encodeStored, fromStoredJson } from '../value/stored.ts'
import { Timestamp, utf8Length, type Value, type ValueObject } from '../value/values.ts'
import {
  BYTES_READ_MAX,
  BYTES_WRITTEN_MAX,
  DOCUMENT_BYTES_MAX,
  DOCUMENTS_READ_MAX,
  DOCUMENTS_WRITTEN_MAX,
} from './limits.ts'
import { Overlay, type PendingWrite } from './overlay.ts'
import type { PreparedRelease, PreparedTable } from './prepared-release.ts'
import { behind, examined, type RangeInput, type RangeOutput } from './ranges.ts'
import { ReadSet } from './read-set.ts'
import { Refusal } from './refusal.ts'

export interface TransactionOptions {
  readonly store: DocumentStore
  readonly release: PreparedRelease
  readonly snapshot: number
  /** The invocation's time: every document that it inserts carries it. */
  readonly nowMicros: bigint
  /** Draws the random part of document IDs; seeded, so a rerun makes the same ones. */
  readonly entropy: IdSource['randomBytes']
  readonly writable: boolean
}

/** How much of a bound is used. */
export interface Usage {
  readonly used: number
  readonly limit: number
}

export type TransactionUsage = Readonly<
  Record<'documentsRead' | 'bytesRead' | 'documentsWritten' | 'bytesWritten', Usage>
>

export class Transaction {
  readonly readSet = new ReadSet()
  readonly snapshot: number
  /** Whether a cursor was refused: cursors come from callers. */
  refusedCursor = false
  readonly #options: TransactionOptions
  readonly #overlay = new Overlay()
  #documentsRead = 0
  #bytesRead = 0
  #bytesWritten = 0
  #inserted = 0
  /** Name of the limit that was passed. Code that catches the failure does not undo it. */
  #limit: string | null = null

  constructor(options: TransactionOptions) {
    this.#options = options
    this.snapshot = options.snapshot
  }

  get limit(): string | null {
    return this.#limit
  }

  get hasRead(): boolean {
    return this.readSet.count > 0
  }

  get isWritable(): boolean {
    return this.#options.writable
  }

  get usage(): TransactionUsage {
    return {
      documentsRead: { used: this.#documentsRead, limit: DOCUMENTS_READ_MAX },
      bytesRead: { used: this.#bytesRead, limit: BYTES_READ_MAX },
      documentsWritten: { used: this.#overlay.size, limit: DOCUMENTS_WRITTEN_MAX },
      bytesWritten: { used: this.#bytesWritten, limit: BYTES_WRITTEN_MAX },
    }
  }

  /**
   * Answers what ends the savepoint: it keeps what was written since, or undoes it. What was read
   * stays in the read set either way, since the code has seen it.
   */
  savepoint(): (keeps: boolean) => void {
    const end = this.#overlay.savepoint()
    const bytesWritten = this.#bytesWritten
    return (keeps) => {
      end(keeps)
      if (!keeps) this.#bytesWritten = bytesWritten
    }
  }

  /** In the order in which documents were first written. */
  writes(): readonly PendingWrite[] {
    return this.#overlay.writes()
  }

  /** Stored JSON of the document with its system fields, or `null`. */
  async get(id: string): Promise<string> {
    this.#table(this.#tableOf(id), 'ctx.db.get')
    const current = await this.#current(id)
    return current === null ? 'null' : withSystemFields(current)
  }

  async range(input: RangeInput): Promise<RangeOutput> {
    const table = this.#table(input.table, 'ctx.db.table')
    const physical = this.#physicalIndex(table, input.index)
    const interval = this.#interval(table, physical, input)
    const shadows = this.#overlay.within(physical, interval)
    const found = await this.#options.store.range({
      index: physical.id,
      ...interval,
      order: input.order,
      // Documents that this invocation wrote are skipped below, so as many more are asked for.
      limit: input.limit + shadows.hidden,
      textUnitsMax: BYTES_READ_MAX - this.#bytesRead + 1,
      snapshot: this.snapshot,
    })
    const { order, limit } = input
    const merged = this.#overlay.merge(found, shadows, { order, limit })
    this.readSet.addInterval(physical.id, examined(interval, order, merged.examinedTo))
    for (const document of merged.documents) this.#countRead(document.text)
    return {
      documents: merged.documents.map(withSystemFields),
      done: merged.done,
      lastKey: merged.documents.at(-1)?.key ?? null,
    }
  }

  /** The new document's ID. */
  async insert(tableName: string, fields: unknown): Promise<string> {
    const table = this.#writableTable(tableName, 'insert')
    const value = this.#checked(table, fields, `insert("${tableName}")`)
    const { nowMicros, entropy } = this.#options
    const millis = Number(nowMicros / 1000n)
    // The counter keeps the IDs of one invocation in the order of their creation.
    const tail = entropy(10)
    tail.set([this.#inserted >> 16, (this.#inserted >> 8) & 255, this.#inserted & 255])
    this.#inserted += 1
    const id = `${tableName}_${encodeUlid(millis, tail)}`
    await this.#write(table, id, { createdAtMicros: nowMicros, before: null }, value)
    return id
  }

  /** Sets the given fields and removes the named optional ones. */
  async patch(id: string, fields: unknown, removed: readonly string[]): Promise<void> {
    const table = this.#writableTable(this.#tableOf(id), 'patch')
    const before = await this.#existing(id, 'patch')
    const patch = fromStored(fields, `patch("${id}")`)
    if (!(patch instanceof Map)) throw new Refusal('TypeError', 'patch takes an object of fields')
    const merged = new Map(before.value)
    for (const name of removed) merged.delete(name)
    for (const [name, value] of patch as ValueObject) merged.set(name, value)
    const value = this.#checkedValue(table, merged, `patch("${id}")`)
    await this.#write(table, id, before.origin, value)
  }

  async replace(id: string, fields: unknown): Promise<void> {
    const table = this.#writableTable(this.#tableOf(id), 'replace')
    const before = await this.#existing(id, 'replace')
    await this.#write(table, id, before.origin, this.#checked(table, fields, `replace("${id}")`))
  }

  async delete(id: string): Promise<void> {
    const table = this.#writableTable(this.#tableOf(id), 'delete')
    const before = await this.#existing(id, 'delete')
    await this.#write(table, id, before.origin, null)
  }

  #tableOf(id: string): string {
    const table = tableOfId(id)
    if (table === null) throw new Refusal('TypeError', `"${id.slice(0, 100)}" is not a document ID`)
    return table
  }

  #table(name: string, where: string): PreparedTable {
    const table = this.#options.release.tables.get(name)
    if (table === undefined) {
      throw new Refusal('TypeError', `${where}: schema.ts declares no table "${name.slice(0, 64)}"`)
    }
    return table
  }

  #writableTable(name: string, verb: string): PreparedTable {
    if (!this.#options.writable) {
      throw new Refusal('TypeError', `ctx.db.${verb}: a Query cannot write; make it a mutation`)
    }
    return this.#table(name, `ctx.db.${verb}`)
  }

  #physicalIndex(table: PreparedTable, name: string | null): PhysicalIndex {
    if (name === null) return table.creationOrder
    const index = table.indexes.get(name)
    if (index === undefined) {
      const known = [...table.indexes.keys()].join(', ') || 'none'
      throw new Refusal(
        'TypeError',
        `table "${table.manifest.name}" has no index "${name.slice(0, 64)}" (it has: ${known})`,
      )
    }
    return index.physical
  }

  #interval(table: PreparedTable, physical: PhysicalIndex, input: RangeInput): KeyInterval {
    const { fields } = physical
    if (input.equal.length > fields.length) {
      throw new Refusal('TypeError', `the index has ${fields.length} fields to compare`)
    }
    const equals = input.equal.map((json, i) => fieldValue(table, fields[i]!, json))
    const bounded = fields[equals.length] ?? '_createdAt'
    if (input.field !== undefined && input.field !== bounded) {
      throw new Refusal(
        'TypeError',
        `the next field of the index is "${bounded}", not "${input.field.slice(0, 64)}"`,
      )
    }
    const bound = (side: RangeInput['lower']) =>
      side && { value: fieldValue(table, bounded, side.value), inclusive: side.inclusive }
    const lower = bound(input.lower)
    const upper = bound(input.upper)
    const interval = keyInterval(physical, {
      equals,
      ...(lower && { lower }),
      ...(upper && { upper }),
    })
    return input.afterKey === undefined ? interval : behind(interval, input.order, input.afterKey)
  }

  async #current(id: string): Promise<StoredDocument | null> {
    this.readSet.addDocument(id)
    const own = this.#overlay.get(id)
    if (own !== undefined) return own.after === null ? null : own.document
    const stored = await this.#options.store.read(id, this.snapshot)
    if (stored !== null) this.#countRead(stored.text)
    return stored
  }

  async #existing(id: string, verb: string) {
    const current = await this.#current(id)
    if (current === null) {
      throw new Refusal('Error', `ctx.db.${verb}: there is no document "${id}"`)
    }
    const value = decodeStored(current.text) as ValueObject
    const own = this.#overlay.get(id)
    const before = own === undefined ? value : own.before
    const revision = current.sequence
    return { value, origin: { createdAtMicros: current.createdAtMicros, before, revision } }
  }

  #checked(table: PreparedTable, fields: unknown, where: string): ValueObject {
    return this.#checkedValue(table, fromStored(fields, where), where)
  }

  #checkedValue(table: PreparedTable, value: Value, where: string): ValueObject {
    try {
      return table.check(value, table.manifest.name) as ValueObject
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      throw new Refusal('TypeError', `${where}: ${error.path} must be ${error.rule}`)
    }
  }

  async #write(
    table: PreparedTable,
    id: string,
    origin: { createdAtMicros: bigint; before: ValueObject | null; revision?: number },
    after: ValueObject | null,
  ): Promise<void> {
    const text = after === null ? null : encodeStored(after)
    this.#countWritten(id, text)
    const write: PendingWrite = {
      id,
      table: table.manifest.name,
      createdAtMicros: origin.createdAtMicros,
      before: origin.before,
      after,
      document: {
        id,
        createdAtMicros: origin.createdAtMicros,
        sequence: origin.revision ?? 0,
        text: text ?? '{}',
      },
    }
    if (after !== null) await this.#checkUnique(table, write)
    this.#overlay.set(write)
  }

  /** Reads the place of the key in each unique index, so a concurrent insert there conflicts. */
  async #checkUnique(table: PreparedTable, write: PendingWrite): Promise<void> {
    for (const index of table.uniqueIndexes) {
      const { fields, name } = index.manifest
      const equals = fields.map((field) => write.after!.get(field))
      if (equals.includes(undefined)) continue
      const { documents } = await this.range({
        table: table.manifest.name,
        index: name,
        equal: equals.map((value) => JSON.parse(encodeStored(value!)) as unknown),
        order: 'asc',
        limit: 2,
      })
      const other = documents.some((text) => !text.includes(`"_id":{"$d":"${write.id}"}`))
      if (other) {
        throw new Refusal(
          'UniqueViolation',
          `${table.manifest.name}: another document has the same ${fields.join()} (index ${name})`,
        )
      }
    }
  }

  #countRead(text: string): void {
    this.#documentsRead += 1
    this.#bytesRead += text.length
    if (this.#documentsRead > DOCUMENTS_READ_MAX) this.#exceed('documents read', DOCUMENTS_READ_MAX)
    if (this.#bytesRead > BYTES_READ_MAX) this.#exceed('bytes read', BYTES_READ_MAX)
  }

  #countWritten(id: string, text: string | null): void {
    const bytes = text === null ? 0 : utf8Length(text)
    this.#bytesWritten += bytes
    if (bytes > DOCUMENT_BYTES_MAX) this.#exceed('document bytes', DOCUMENT_BYTES_MAX)
    if (this.#bytesWritten > BYTES_WRITTEN_MAX) this.#exceed('bytes written', BYTES_WRITTEN_MAX)
    if (this.#overlay.size >= DOCUMENTS_WRITTEN_MAX && this.#overlay.get(id) === undefined) {
      this.#exceed('documents written', DOCUMENTS_WRITTEN_MAX)
    }
  }

  #exceed(name: string, bound: number): never {
    this.#limit ??= name
    throw new Fault('LIMIT_EXCEEDED', { detail: `${name}: at most ${bound}` })
  }
}

function fromStored(json: unknown, where: string): Value {
  try {
    return fromStoredJson(json)
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    throw new Refusal('TypeError', `${where}: ${error.path} must be ${error.rule}`)
  }
}

/** A value to compare an index field with, in the field's own type. */
function fieldValue(table: PreparedTable, field: string, json: unknown): Value {
  const value = fromStored(json, `index field "${field}"`)
  if (field === '_createdAt') {
    if (typeof value !== 'bigint' && !(value instanceof Timestamp)) {
      throw new Refusal('TypeError', '_createdAt is compared with a bigint of microseconds')
    }
    return value instanceof Timestamp ? value : new Timestamp(value)
  }
  try {
    return table.checkField.get(field)!(value, field)
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    throw new Refusal('TypeError', `index field "${error.path}" must be ${error.rule}`)
  }
}

/** Field names of a document begin with a letter, so the system fields stand first unsorted. */
function withSystemFields(document: StoredDocument): string {
  const { id, createdAtMicros, sequence, text } = document
  const created = `"_createdAt":{"$t":"${createdAtMicros}"}`
  const system = `{${created},"_id":{"$d":"${id}"},"_revision":{"$i":"${sequence}"}`
  return text === '{}' ? `${system}}` : `${system},${text.slice(1)}`
}
