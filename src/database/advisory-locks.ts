/** Locks that are not of a row. Each lasts until the end of the transaction that takes it. */
import { sha256 } from '../system/digests.ts'
import type { OperationId } from '../value/ids.ts'
import type { Connection } from './connection.ts'
import type { Tx } from './transaction.ts'

/** First key of every lock of this program: "svc" in ASCII. */
const NAMESPACE = 0x737663
/** "opn" in ASCII: locks of single operations, whose second key is a digest. */
const OPERATIONS = 0x6f706e
const MIGRATIONS = 1
const BOOTSTRAP = 2

/** Waits for another migrator, `timeoutMs` at most. */
export async function lockMigrations(connection: Connection, timeoutMs: number): Promise<void> {
  await connection.query(
    `select pg_advisory_xact_lock($1::integer, $2::integer)`,
    [NAMESPACE, MIGRATIONS],
    { timeoutMs },
  )
}

/** Held around every change of the first-owner code, and around the use of its file. */
export async function lockBootstrap(tx: Tx): Promise<void> {
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [NAMESPACE, BOOTSTRAP])
}

/** Makes requests with one Operation ID take turns, before there is a row to lock. */
export async function lockOperation(tx: Tx, operationId: OperationId): Promise<void> {
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [
    OPERATIONS,
    sha256(operationId).readInt32BE(0),
  ])
}

/** First key of the locks of external subjects; the second is a part of the subject's digest. */
const SUBJECTS = NAMESPACE + 1

/**
 * Held around the first login of a subject, which has no row yet that could be locked. Two subjects
 * that share 32 bits of digest wait for each other and nothing worse.
 */
export async function lockSubject(tx: Tx, subjectDigest: Uint8Array): Promise<void> {
  const { buffer, byteOffset, byteLength } = subjectDigest
  const key = new DataView(buffer, byteOffset, byteLength).getInt32(0)
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [SUBJECTS, key])
}
