/**
 * Imports: many documents with IDs that the caller chose, inserted in one commit. A document that
 * exists with equal fields stays as it is, so a repeat under another operation ID inserts none
 * twice.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { Transaction } from '../transactions/transaction.ts'
import {
  type AdministrationPort,
  checkInserted,
  definitionOf,
  FUNCTION_PREFIX,
  isStateConflict,
  requireTable,
} from './administration-port.ts'

export interface ImportedDocument {
  readonly documentId: string
  /** The author's fields. */
  readonly value: ValueObject
}

export interface DocumentImportRequest {
  readonly operationId: string
  /** Identifies the operator and all that an exact repeat has in common. */
  readonly fingerprint: string
  readonly table: string
  /** The creation time of the first document; each other one is a microsecond later. */
  readonly createdAtMicros: bigint
  readonly documents: readonly ImportedDocument[]
  readonly requestId: string
  /** The span that causes the import; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
}

export interface ImportOutcome {
  readonly inserted: number
  /** Documents that existed with equal fields. */
  readonly unchanged: number
  readonly replayed: boolean
  /** Null where nothing was inserted. */
  readonly commitSequence: number | null
}

/** Inserts the documents. Failures name a document as `documents[INDEX]`. */
export async function importOnce(
  port: AdministrationPort,
  prepared: PreparedRelease,
  request: DocumentImportRequest,
): Promise<ImportOutcome> {
  const table = requireTable(prepared, request.table)
  const documents = request.documents.map(({ documentId, value }, i) => {
    return { documentId, value: checkInserted(table, value, `documents[${i}].value`) }
  })
  const outcome = await port.mutations.invoke({
    prepared,
    definition: definitionOf('import'),
    argumentsText: sha256Hex(request.fingerprint),
    principal: null,
    context: { requestId: request.requestId, invocationId: port.system.ids.make('ivc') },
    trace: request.trace,
    operationId: request.operationId,
    target: FUNCTION_PREFIX,
    caller: FUNCTION_PREFIX,
    perform: (transaction) => insertAll(transaction, documents, request.createdAtMicros),
  })
  const { inserted } = JSON.parse(outcome.resultText) as { readonly inserted: number }
  const { replayed, commitSequence } = outcome
  return { inserted, unchanged: request.documents.length - inserted, replayed, commitSequence }
}

async function insertAll(
  transaction: Transaction,
  documents: readonly ImportedDocument[],
  createdAtMicros: bigint,
): Promise<string> {
  // Concurrent reads are one request to PostgreSQL; the transaction keeps what they find.
  await Promise.all(documents.map(({ documentId }) => transaction.get(documentId)))
  let inserted = 0
  for (const [i, { documentId, value: fields }] of documents.entries()) {
    const current = transaction.get(documentId)
    const before = current instanceof Promise ? await current : current
    if (before !== null) {
      if (before.text === encodeStored(fields)) continue
      throw conflict(i, 'documentId', 'an ID without a document, or the fields of that document')
    }
    try {
      // One time for all would leave their order to their IDs.
      const created = { createdAtMicros: createdAtMicros + BigInt(i), fields }
      const written = transaction.insertAs(documentId, created)
      if (written instanceof Promise) await written
    } catch (error) {
      if (isFault(error, 'LIMIT_EXCEEDED')) throw tooLarge(i, error)
      if (!isStateConflict(error)) throw error
      throw conflict(i, 'value', 'fields that no unique index has yet')
    }
    inserted += 1
  }
  return JSON.stringify({ inserted })
}

function tooLarge(index: number, { detail = '' }: Fault): Fault {
  const violations = [{ path: `documents[${index}].value`, rule: detail }]
  return new Fault('PLATFORM_BODY_TOO_LARGE', { detail, violations })
}

function conflict(index: number, part: 'documentId' | 'value', rule: string): Fault {
  const violations = [{ path: `documents[${index}].${part}`, rule }]
  return new Fault('PRODUCT_STATE_CONFLICT', { violations })
}
