/** Advisory locks. Each is released at the end of the transaction that takes it. */
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
const OWNERS = 3

/** Waits for other processes that migrate, at most `timeoutMs`. */
export async function lockMigrations(connection: Connection, timeoutMs: number): Promise<void> {
  await connection.query(
    `select pg_advisory_xact_lock($1::integer, $2::integer)`,
    [NAMESPACE, MIGRATIONS],
    { timeoutMs },
  )
}

/** Locks the first-owner code and its file. */
export async function lockBootstrap(tx: Tx): Promise<void> {
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [NAMESPACE, BOOTSTRAP])
}

/** Serializes changes that may leave the installation without an owner. */
export async function lockOwners(tx: Tx): Promise<void> {
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [NAMESPACE, OWNERS])
}

/** Serializes requests with the same Operation ID, before there is a row to lock. */
export async function lockOperation(tx: Tx, operationId: OperationId): Promise<void> {
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [
    OPERATIONS,
    sha256(operationId).readInt32BE(0),
  ])
}

/** First key of the locks of external subjects; the second is a part of the subject's digest. */
const SUBJECTS = NAMESPACE + 1

/**
 * Locks an external subject for its first login, when there is no row to lock. Two subjects whose
 * digests share 32 bits only wait for each other.
 */
export async function lockSubject(tx: Tx, subjectDigest: Uint8Array): Promise<void> {
  const { buffer, byteOffset, byteLength } = subjectDigest
  const key = new DataView(buffer, byteOffset, byteLength).getInt32(0)
  await tx.rows(`select pg_advisory_xact_lock($1::integer, $2::integer)`, [SUBJECTS, key])
}
