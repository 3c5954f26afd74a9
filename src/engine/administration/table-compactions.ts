/**
 * Compactions: remove the fields of stored documents that no Release declares. Each request reads
 * some documents in the order of their creation and changes them in one commit. The last one tells
 * the Releases which fields are left, so that those which declare all of them read what is stored.
 */
import { keyInterval, keySuccessor } from '../../documents/keys.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { EMPTY_SHAPE, type FieldShape, mergeShapes } from '../../value/schema/field-shapes.ts'
import { declaredShape, withoutUndeclared } from '../../value/schema/undeclared-fields.ts'
import { decodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'
import type { Transaction } from '../transactions/transaction.ts'
import {
  type AdministrationPort,
  definitionOf,
  FUNCTION_PREFIX,
  invalid,
  requireTable,
} from './administration-port.ts'

/** Bounds of one request, which holds up other calls while it decodes documents. */
const READ_MAX = 500
const READ_TEXT_UNITS_MAX = 2 * 1024 * 1024

export interface CompactionRequest {
  readonly operationId: string
  /** Identifies the operator and all that an exact repeat has in common. */
  readonly fingerprint: string
  readonly table: string
  /** True if no document is changed. */
  readonly dryRun: boolean
  /** The cursor of the request before; undefined for the first one. */
  readonly after: string | undefined
  /** Returns the fields of the table that Releases in use declare now, as `declaredShape` does. */
  readonly declared: () => Promise<FieldShape>
  readonly requestId: string
  /** The span that causes the compaction; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
}

export interface CompactionOutcome {
  /** Documents that the request read. */
  readonly read: number
  /** Documents that have, or had, fields which no Release in use declares. */
  readonly changed: number
  readonly removedFields: number
  /** The cursor of the next request; null if every document was read. */
  readonly next: string | null
  readonly replayed: boolean
  /** Null if no document was changed. */
  readonly commitSequence: number | null
}

/** The result of one request, as its operation record has it. */
interface Batch extends Pick<CompactionOutcome, 'read' | 'changed' | 'removedFields' | 'next'> {
  /** The compaction that it belongs to. */
  readonly id: string
}

/** A place in a compaction. */
interface Position {
  readonly id: string
  /** The key of the last document that was read; null at the start. */
  readonly afterKey: string | null
}

const ID_CHARACTERS = 16
/** The ID of a dry run, which has no effect. */
const DRY_RUN = '-'.repeat(ID_CHARACTERS)

export async function compactOnce(
  port: AdministrationPort,
  prepared: PreparedRelease,
  request: CompactionRequest,
): Promise<CompactionOutcome> {
  const compaction = new Compaction(port, requireTable(prepared, request.table), request)
  if (request.dryRun) {
    const batch = await compaction.run(null)
    return { ...batch, replayed: false, commitSequence: null }
  }
  const outcome = await port.mutations.invoke({
    prepared,
    definition: definitionOf('compact'),
    argumentsText: sha256Hex(request.fingerprint),
    principal: null,
    context: { requestId: request.requestId, invocationId: port.system.ids.make('ivc') },
    trace: request.trace,
    operationId: request.operationId,
    target: FUNCTION_PREFIX,
    caller: FUNCTION_PREFIX,
    perform: async (transaction) => JSON.stringify(await compaction.run(transaction)),
  })
  const { id, ...batch } = JSON.parse(outcome.resultText) as Batch
  if (batch.next === null) await compaction.end(id)
  const { replayed, commitSequence } = outcome
  return { ...batch, replayed, commitSequence }
}

class Compaction {
  readonly #port: AdministrationPort
  readonly #table: PreparedTable
  readonly #request: CompactionRequest

  constructor(port: AdministrationPort, table: PreparedTable, request: CompactionRequest) {
    this.#port = port
    this.#table = table
    this.#request = request
  }

  /** Reads the next documents and changes them, or counts those to change in a dry run. */
  async run(transaction: Transaction | null): Promise<Batch> {
    const { id, afterKey } = this.#position()
    const shape = await this.#declared(id)
    const { documents, lastKey } = await this.#page(afterKey)
    const undeclared = documents.flatMap(({ id: documentId, text }) => {
      const { removed } = withoutUndeclared(shape, decodeStored(text) as ValueObject)
      return removed === 0 ? [] : [{ documentId, removed }]
    })
    const counts = { read: documents.length, next: lastKey && this.#sealed(id, lastKey), id }
    if (transaction === null) {
      const removedFields = undeclared.reduce((sum, { removed }) => sum + removed, 0)
      return { ...counts, changed: undeclared.length, removedFields }
    }
    const ids = undeclared.map(({ documentId }) => documentId)
    return { ...counts, ...(await rewriteAll(transaction, ids, shape)) }
  }

  /** Tells the Releases which fields are left, once no attempt reads earlier versions. */
  async end(id: string): Promise<void> {
    const { committer, preparations } = this.#port
    await committer.whenSnapshotsReach(committer.durable)
    await preparations.storedFields.endCompaction(this.#request.table, id)
  }

  /**
   * Returns the place at which the request continues. A compaction that a restart interrupted
   * starts over: the server no longer knows which Releases wrote documents meanwhile.
   */
  #position(): Position {
    const { cursors, preparations, system } = this.#port
    const { after, table, dryRun } = this.#request
    const content = after === undefined ? '' : cursors.open(this.#list(), after)
    if (content === null) throw invalid('after', 'a cursor of the request before')
    const id = content.slice(0, ID_CHARACTERS)
    const afterKey = content.slice(ID_CHARACTERS) || null
    if (dryRun) return { id: DRY_RUN, afterKey }
    const running = preparations.storedFields.compactionOf(table)
    if (afterKey !== null && running === id) return { id, afterKey }
    if (afterKey !== null && running !== null) {
      throw superseded()
    }
    const started = Buffer.from(system.randomBytes(ID_CHARACTERS / 2)).toString('hex')
    preparations.storedFields.beginCompaction(table, started)
    return { id: started, afterKey: null }
  }

  /** Returns the fields that any Release may use now, and notes that documents keep them. */
  async #declared(id: string): Promise<FieldShape> {
    const { preparations, inFlight } = this.#port
    const { table, declared } = this.#request
    let shape = mergeShapes(EMPTY_SHAPE, await declared())
    for (const tables of [...preparations.tables(), ...inFlight.tablesInFlight()]) {
      const manifest = tables.get(table)
      if (manifest !== undefined) shape = mergeShapes(shape, declaredShape(manifest.fields))
    }
    if (id !== DRY_RUN && !preparations.storedFields.keep(table, id, shape)) throw superseded()
    return shape
  }

  async #page(afterKey: string | null) {
    const { committer, store } = this.#port
    const { creationOrder } = this.#table
    const whole = keyInterval(creationOrder, { equals: [] })
    const pin = committer.pinSnapshot()
    try {
      const { documents, exhausted } = await store.range({
        index: creationOrder.id,
        lower: afterKey === null ? whole.lower : keySuccessor(afterKey),
        upper: whole.upper,
        order: 'asc',
        limit: READ_MAX,
        textUnitsMax: READ_TEXT_UNITS_MAX,
        snapshot: committer.durable,
      })
      const found: StoredDocument[] = documents.map(({ document }) => document)
      return { documents: found, lastKey: exhausted ? null : documents.at(-1)!.key }
    } finally {
      committer.unpinSnapshot(pin)
    }
  }

  #sealed(id: string, key: string): string {
    return this.#port.cursors.seal(this.#list(), id + key)
  }

  #list(): string {
    const { table, dryRun } = this.#request
    return JSON.stringify([FUNCTION_PREFIX, 'compact', table, dryRun])
  }
}

function superseded(): Fault {
  return new Fault('PRODUCT_STATE_CONFLICT', { detail: 'another compaction of the table runs' })
}

async function rewriteAll(
  transaction: Transaction,
  ids: readonly string[],
  shape: FieldShape,
): Promise<{ readonly changed: number; readonly removedFields: number }> {
  let changed = 0
  let removedFields = 0
  // Concurrent reads are one request to PostgreSQL; the transaction keeps what they find.
  const found = await Promise.all(ids.map(async (id) => transaction.get(id)))
  for (const [i, id] of ids.entries()) {
    // A commit that is not durable yet may have deleted it.
    if (found[i] === null) continue
    await transaction.rewrite(id, (stored) => {
      const { fields, removed } = withoutUndeclared(shape, stored)
      if (removed > 0) changed += 1
      removedFields += removed
      return fields
    })
  }
  return { changed, removedFields }
}
