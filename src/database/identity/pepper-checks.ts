/** Rows of service_platform_pepper_checks, which recognize the peppers of the database. */
import type { Reader } from '../database.ts'
import { readBoolean, readBytes } from '../rows.ts'
import { expectOneRow, type Tx } from '../transaction.ts'

export interface PepperCheck {
  /** The name of the pepper. */
  readonly pepper: string
  /** 32 bytes that only this pepper produces. */
  readonly digest: Uint8Array
}

/** Returns whether the table exists: the schema may be older than this program. */
export async function hasPepperChecks(reader: Reader): Promise<boolean> {
  const rows = await reader.rows(
    `select to_regclass('public.service_platform_pepper_checks') is not null as present`,
    [],
  )
  return readBoolean(rows[0] ?? {}, 'present')
}

/** Returns null for a pepper that the database was never used with. */
export async function findPepperCheck(reader: Reader, pepper: string): Promise<Uint8Array | null> {
  const rows = await reader.rows(
    `select check_digest from service_platform_pepper_checks where pepper = $1`,
    [pepper],
  )
  return rows[0] === undefined ? null : readBytes(rows[0], 'check_digest')
}

/** Records a check unless there is one. Waits for another server that is recording it. */
export async function recordPepperCheck(
  tx: Tx,
  { pepper, digest }: PepperCheck,
  atMicros: bigint,
): Promise<void> {
  await tx.execute(
    `insert into service_platform_pepper_checks (pepper, check_digest, recorded_at_micros)
     values ($1, $2, $3)
     on conflict (pepper) do nothing`,
    [pepper, digest, atMicros],
  )
}

/** Replaces a check, which the caller has found. */
export async function replacePepperCheck(
  tx: Tx,
  { pepper, digest }: PepperCheck,
  atMicros: bigint,
): Promise<void> {
  const changed = await tx.execute(
    `update service_platform_pepper_checks
        set check_digest = $2, recorded_at_micros = $3
      where pepper = $1`,
    [pepper, digest, atMicros],
  )
  expectOneRow(changed, 'a pepper check was not replaced')
}
