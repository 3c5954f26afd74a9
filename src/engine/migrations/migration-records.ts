/** The progress of migrations as documents of the server, and the states that they go through. */
import type { StoredDocument } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { MIGRATION_DOCUMENTS, type MigrationState } from '../../value/migrations/migrations.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import { Timestamp, type Value, type ValueObject } from '../../value/values.ts'
import type { Transaction } from '../transactions/transaction.ts'

/** The progress of one migration, which is the same in every Release with its digest. */
export interface MigrationRecord {
  readonly id: string
  readonly name: string
  readonly digest: string
  readonly table: string
  /** The Release whose code runs. */
  readonly releaseId: string
  readonly state: Exclude<MigrationState, 'pending'>
  /** Number of writes of this record: the newest of two versions has the larger one. */
  readonly version: bigint
  /** Binary key of the last document that was passed; null before the first. */
  readonly cursor: string | null
  readonly processed: bigint
  readonly changed: bigint
  /** Number of times that a document stopped it. */
  readonly failed: bigint
  /** Code of the failure that stopped it; null in every state but `blocked`. */
  readonly lastErrorCode: string | null
  /** The document that stopped it; null for none. */
  readonly lastDocumentId: string | null
  readonly startedAtMicros: bigint
  readonly finishedAtMicros: bigint | null
}

export type RecordChange = Partial<
  Omit<MigrationRecord, 'id' | 'name' | 'digest' | 'table' | 'version'>
>

/** Most records that are read at once; more follow. */
const PAGE_MAX = 500

export type NewRecord = Pick<MigrationRecord, 'name' | 'digest' | 'table' | 'releaseId'> & {
  readonly startedAtMicros: bigint
}

/** Returns a record at its beginning, without its ID. */
export function startedRecord(given: NewRecord): Omit<MigrationRecord, 'id'> {
  return {
    ...given,
    state: 'running',
    version: 1n,
    cursor: null,
    processed: 0n,
    changed: 0n,
    failed: 0n,
    lastErrorCode: null,
    lastDocumentId: null,
    finishedAtMicros: null,
  }
}

/** Inserts a record. `transaction` is one of the server, as in all functions below. */
export async function insertRecord(
  transaction: Transaction,
  record: Omit<MigrationRecord, 'id'>,
): Promise<MigrationRecord> {
  const json: unknown = JSON.parse(encodeStored(fieldsOf(record)))
  return { ...record, id: await transaction.insert(MIGRATION_DOCUMENTS, json) }
}

/** Reads a record that exists. */
export async function readRecord(transaction: Transaction, id: string): Promise<MigrationRecord> {
  const found = await transaction.get(id)
  assert(found !== null, `there is no migration ${id}`)
  return recordOf(found)
}

/** Writes what changed in a record that was read in this transaction, and returns it. */
export async function changeRecord(
  transaction: Transaction,
  record: MigrationRecord,
  change: RecordChange,
): Promise<MigrationRecord> {
  const changed = { ...record, ...change, version: record.version + 1n }
  await transaction.update(record.id, () => fieldsOf(changed))
  return changed
}

export async function readAllRecords(transaction: Transaction): Promise<MigrationRecord[]> {
  const range = { table: MIGRATION_DOCUMENTS, index: null, equal: [], order: 'asc' } as const
  const records: MigrationRecord[] = []
  let afterKey: string | undefined
  for (;;) {
    const page = await transaction.range({ ...range, limit: PAGE_MAX, afterKey })
    records.push(...page.documents.map(recordOf))
    if (page.done || page.lastKey === null) return records
    afterKey = page.lastKey
  }
}

function fieldsOf(record: Omit<MigrationRecord, 'id'>): ValueObject {
  const { startedAtMicros, finishedAtMicros, cursor, ...same } = record
  const { id: _, ...fields } = same as typeof same & { readonly id?: string }
  return new Map<string, Value>([
    ...Object.entries(fields),
    ['cursor', cursor === null ? null : Buffer.from(cursor, 'latin1').toString('base64url')],
    ['startedAt', new Timestamp(startedAtMicros)],
    ['finishedAt', finishedAtMicros === null ? null : new Timestamp(finishedAtMicros)],
  ])
}

function recordOf({ id, text }: StoredDocument): MigrationRecord {
  const fields = decodeStored(text) as ValueObject
  const cursor = fields.get('cursor') as string | null
  return {
    id,
    name: fields.get('name') as string,
    digest: fields.get('digest') as string,
    table: fields.get('table') as string,
    releaseId: fields.get('releaseId') as string,
    state: fields.get('state') as MigrationRecord['state'],
    version: fields.get('version') as bigint,
    cursor: cursor === null ? null : Buffer.from(cursor, 'base64url').toString('latin1'),
    processed: fields.get('processed') as bigint,
    changed: fields.get('changed') as bigint,
    failed: fields.get('failed') as bigint,
    lastErrorCode: fields.get('lastErrorCode') as string | null,
    lastDocumentId: fields.get('lastDocumentId') as string | null,
    startedAtMicros: (fields.get('startedAt') as Timestamp).micros,
    finishedAtMicros: (fields.get('finishedAt') as Timestamp | null)?.micros ?? null,
  }
}

export function isUnfinished({ state }: Pick<MigrationRecord, 'state'>): boolean {
  return state === 'running' || state === 'paused' || state === 'blocked'
}
