/**
 * Batches of a migration: each is one transaction, which reads the next documents, runs the code
 * and writes its patches together with the progress. A document is therefore changed exactly once,
 * whenever the server ends.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { nextTurn } from '../../system/event-loop.ts'
import type { System } from '../../system/system.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import type { MigrationManifest } from '../../value/manifest.ts'
import { BATCH_BYTES_MAX } from '../../value/migrations/migrations.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { InvocationPort } from '../invocations/attempt.ts'
import { beginInvocation, type Invocation } from '../invocations/invocation.ts'
import type { MutationPort, Mutations } from '../invocations/mutations.ts'
import type { Release } from '../releases/executable-release.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import { Transaction } from '../transactions/transaction.ts'
import { batchDefinition, type DocumentPatch, runBatchCode } from './batch-code.ts'
import { changeRecord, type MigrationRecord, readRecord } from './migration-records.ts'

export interface BatchesOptions extends InvocationPort, MutationPort {
  readonly mutations: Mutations
  readonly preparations: Preparations
  readonly system: System
}

/** The migration that a batch belongs to. */
export interface BatchInput {
  readonly release: Release
  readonly migration: MigrationManifest
  readonly documentsMax: number
}

export interface BatchEnd {
  readonly record: MigrationRecord
  /** The documents that were passed in this batch. */
  readonly processed: number
  readonly changed: number
  /** The error for which the batch ended before `lastDocumentId` of the record; null for none. */
  readonly failure: string | null
}

/** A document before and after, as a dry run shows it. */
export interface DocumentPreview {
  readonly documentId: string
  readonly before: string
  /** Stored JSON, as `before`; equal to it for no change, null if the code or the schema fails. */
  readonly after: string | null
  readonly error: { readonly code: string; readonly message: string } | null
}

interface Applied {
  readonly documents: readonly StoredDocument[]
  /** True if the last document of the table is among them. */
  readonly done: boolean
  /** Number of the documents before a failure. */
  readonly processed: number
  readonly changed: number
  /** The key of the last processed document. */
  readonly cursor: string | null
  readonly failure: { readonly code: string; readonly message: string } | null
}

/** Patches that are written before other calls continue. */
const YIELD_EVERY = 20

/** The first document of a batch, for the report of one that fails as a whole. */
export interface FirstDocument {
  id: string | null
}

export class Batches {
  readonly #options: BatchesOptions

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  /**
   * Runs the next batch of a migration whose record is running; any other state ends it without an
   * effect. Rejects with the Fault of a batch that failed as a whole, which wrote nothing.
   */
  async run(
    recordId: string,
    input: BatchInput,
    { first, trace }: { readonly first: FirstDocument; readonly trace?: Span | null },
  ): Promise<BatchEnd> {
    const { mutations, preparations, inFlight, system } = this.#options
    const { ids } = system
    const { release, migration } = input
    const endActive = inFlight.begin(release)
    try {
      const prepared = await preparations.prepare(release)
      let end: BatchEnd | null = null
      await mutations.invoke({
        operationId: ids.make('opn'),
        target: 'migration',
        caller: 'migration',
        definition: batchDefinition(migration),
        prepared,
        argumentsText: '{}',
        principal: null,
        isRecorded: false,
        context: { requestId: ids.make('req'), invocationId: ids.make('ivc') },
        trace,
        perform: async (transaction, invocation) => {
          end = await this.#perform(recordId, input, { transaction, invocation, first })
          return 'null'
        },
      })
      return end!
    } finally {
      endActive()
    }
  }

  async #perform(
    recordId: string,
    input: BatchInput,
    {
      transaction,
      invocation,
      first,
    }: {
      readonly transaction: Transaction
      readonly invocation: Invocation
      readonly first: FirstDocument
    },
  ): Promise<BatchEnd> {
    const server = transaction.asServer()
    const record = await readRecord(server, recordId)
    if (record.state !== 'running') return { record, processed: 0, changed: 0, failure: null }
    const run = { ...input, cursor: record.cursor, first }
    const applied = await this.#apply(run, transaction, invocation)
    const { processed, changed, failure, cursor } = applied
    const progress = {
      cursor,
      processed: record.processed + BigInt(processed),
      changed: record.changed + BigInt(changed),
    }
    const atMicros = invocation.nowMicros
    const state =
      failure !== null
        ? blocked(record, { code: failure.code, documentId: applied.documents[processed]!.id })
        : applied.done
          ? { state: 'complete' as const, finishedAtMicros: atMicros }
          : {}
    const after = await changeRecord(server, record, { ...progress, ...state })
    return { record: after, processed, changed, failure: failure?.message ?? null }
  }

  /** Runs the code for the first documents and shows what it would write. Nothing is stored. */
  async dryRun(input: BatchInput): Promise<readonly DocumentPreview[]> {
    const { preparations, inFlight, committer, system } = this.#options
    const endActive = inFlight.begin(input.release)
    const pin = committer.pinSnapshot()
    try {
      const prepared = await preparations.prepare(input.release)
      const invocation = this.#invocation(prepared, input.migration)
      const transaction = new Transaction({
        store: this.#options.store,
        release: prepared,
        snapshot: committer.assigned,
        pending: committer.pending,
        nowMicros: system.nowMicros(),
        seed: invocation.seed,
        writable: true,
      })
      const run = { ...input, cursor: null, first: { id: null } }
      const { documents, processed, failure } = await this.#apply(run, transaction, invocation)
      await transaction.whenDurable()
      const shown = documents.slice(0, processed + (failure === null ? 0 : 1))
      const previews = shown.map(async ({ id, text: before }, i): Promise<DocumentPreview> => {
        if (i === processed) return { documentId: id, before, after: null, error: failure }
        const after = (await transaction.get(id))!.text
        return { documentId: id, before, after, error: null }
      })
      return await Promise.all(previews)
    } finally {
      committer.unpinSnapshot(pin)
      endActive()
    }
  }

  #invocation(prepared: PreparedRelease, migration: MigrationManifest): Invocation {
    const { ids } = this.#options.system
    const context = { requestId: ids.make('req'), invocationId: ids.make('ivc') }
    const definition = batchDefinition(migration)
    const input = { prepared, definition, argumentsText: '{}', principal: null, context }
    return beginInvocation(this.#options, input, undefined)
  }

  /** Reads the documents after the cursor, runs the code and writes the patches. */
  async #apply(
    run: BatchInput & { readonly cursor: string | null; readonly first: FirstDocument },
    transaction: Transaction,
    invocation: Invocation,
  ): Promise<Applied> {
    const { migration, cursor } = run
    const range = {
      table: migration.table,
      index: migration.index,
      equal: [],
      order: 'asc',
      textUnitsMax: BATCH_BYTES_MAX,
      ...(cursor !== null && { afterKey: cursor }),
    } as const
    const page = await transaction.range({ ...range, limit: run.documentsMax })
    const { documents, done } = page
    run.first.id = documents[0]?.id ?? null
    if (documents.length === 0) {
      return { documents, done: true, processed: 0, changed: 0, cursor, failure: null }
    }
    const code = await runBatchCode(this.#options, invocation, transaction, documents)
    const fixed = fixedFields(run)
    let changed = 0
    let failure: Applied['failure'] = null
    let processed = 0
    for (const patch of code.patches) {
      if (patch !== null) {
        failure = await writePatch(transaction, documents[processed]!.id, patch, fixed)
        if (failure !== null) break
        changed += 1
        if (changed % YIELD_EVERY === 0) await nextTurn()
      }
      processed += 1
    }
    if (failure === null && code.failure !== null) {
      failure = { code: 'FUNCTION_FAILED', message: code.failure }
    }
    const passed = { documents, processed, changed, failure }
    if (failure === null) return { ...passed, done, cursor: page.lastKey }
    // No patch changes a key, so the part before the failure ends at its last document.
    const part = processed === 0 ? null : await transaction.range({ ...range, limit: processed })
    return { ...passed, done: false, cursor: part === null ? cursor : part.lastKey }
  }
}

/** Returns the change of a record that a document stopped. */
export function blocked(
  { failed }: MigrationRecord,
  { code, documentId }: { readonly code: string; readonly documentId: string | null },
) {
  return {
    state: 'blocked',
    failed: failed + 1n,
    lastErrorCode: code,
    lastDocumentId: documentId,
  } as const
}

/** Returns the fields that no patch may set, as that moves a document in the order. */
function fixedFields({ release, migration }: BatchInput): readonly string[] {
  const table = release.tables.get(migration.table)
  return table?.indexes.find(({ name }) => name === migration.index)?.fields ?? []
}

/** Writes one patch. Returns the failure that is one of this document, and throws any other. */
async function writePatch(
  transaction: Transaction,
  documentId: string,
  { fields, removed }: DocumentPatch,
  fixed: readonly string[],
): Promise<Applied['failure']> {
  const set = typeof fields === 'object' && fields !== null ? fields : {}
  const moved = fixed.find((name) => Object.hasOwn(set, name) || removed.includes(name))
  if (moved !== undefined) {
    const message = `the patch sets "${moved}", a field of the index whose order it follows`
    return { code: 'FUNCTION_FAILED', message }
  }
  try {
    await transaction.patch(documentId, fields, removed)
    return null
  } catch (error) {
    if (!(error instanceof OperationError)) throw error
    const code = error.violated === null ? 'FUNCTION_FAILED' : 'UNIQUE_VIOLATION'
    return { code, message: error.message }
  }
}

/** Returns the Fault of a migration that the Release does not have. */
export function unknownMigration(name: string): Fault {
  return new Fault('FUNCTION_NOT_FOUND', { detail: `migration ${name}` })
}
