/**
 * Classifies failures of PostgreSQL; no other file uses a SQLSTATE. Messages of PostgreSQL can have
 * stored values, so only codes and names of tables, columns and constraints are passed on.
 */
import { DatabaseError } from 'pg'
import { Fault } from '../errors/fault.ts'
import { reasonOfCode } from './connect-failures.ts'

export type QueryFailureKind =
  /** PostgreSQL rolled the transaction back because of another one: it can be retried. */
  | 'retry'
  /** The connection is lost, or its state is unknown. */
  | 'lost'
  /** PostgreSQL cannot run the statement now: a timeout, no space, a standby. */
  | 'unavailable'
  /** The schema is not that of this program, or pages are corrupt. */
  | 'corrupt'
  /** The statement is wrong. */
  | 'programming'

/** A statement that failed. transaction.ts converts it to a Fault for callers of this folder. */
export class QueryFailure extends Error {
  readonly kind: QueryFailureKind
  /** Five characters; null if PostgreSQL did not respond. */
  readonly sqlstate: string | null

  constructor(kind: QueryFailureKind, detail: string, sqlstate: string | null) {
    super(detail)
    this.name = 'QueryFailure'
    this.kind = kind
    this.sqlstate = sqlstate
  }

  toFault(): Fault {
    switch (this.kind) {
      case 'retry':
      case 'lost':
      case 'unavailable':
        return new Fault('PLATFORM_UNAVAILABLE', { detail: this.message })
      case 'corrupt':
        return new Fault('PLATFORM_IDENTITY_STORAGE_CORRUPT', { detail: this.message })
      case 'programming':
        return new Fault('PLATFORM_INTERNAL', { detail: this.message })
    }
  }

  /** True if the transaction of a COMMIT that failed like this is certainly rolled back. */
  get isRolledBack(): boolean {
    const sqlstate = this.sqlstate ?? ''
    // 40003 is "statement completion unknown"; class 57 can end a backend after its commit.
    return /^(?:23|25|40)/.test(sqlstate) && sqlstate !== '40003'
  }
}

const LOST = /^(?:08|57P0[1235])/
const UNAVAILABLE = /^(?:53|58|28|57014|57P04|55P03|25P0[34]|25006|3D000)/
const CORRUPT = /^(?:XX00[12]|42P01|42703|3F000)/

/** Classifies an error that node-postgres threw for a connection or a statement. */
export function toQueryFailure(error: unknown): QueryFailure {
  if (!(error instanceof DatabaseError) || error.code === undefined) {
    const message = error instanceof Error ? error.message : 'no message'
    return new QueryFailure('lost', `connection: ${message}`, null)
  }
  const detail = [`sqlstate ${error.code}`, error.table, error.column, error.constraint]
    .filter((part) => part !== undefined)
    .join(' ')
  return new QueryFailure(kindOf(error.code), detail, error.code)
}

function kindOf(sqlstate: string): QueryFailureKind {
  if (sqlstate === '40001' || sqlstate === '40P01') return 'retry'
  if (LOST.test(sqlstate)) return 'lost'
  if (UNAVAILABLE.test(sqlstate)) return 'unavailable'
  return CORRUPT.test(sqlstate) ? 'corrupt' : 'programming'
}

/** Codes of a database that prevents the start: that of identity and that of documents. */
export type StartupCode =
  | 'SERVER_PLATFORM_DATABASE_UNAVAILABLE'
  | 'SERVER_DOCUMENT_DATABASE_UNAVAILABLE'

/** Converts a failure during the start to the startup code of its database. */
export function toStartupFault(
  error: unknown,
  code: StartupCode = 'SERVER_PLATFORM_DATABASE_UNAVAILABLE',
): unknown {
  if (error instanceof QueryFailure) {
    const reason = error.sqlstate === null ? null : reasonOfCode(error.sqlstate)
    return new Fault(code, { detail: reason ?? error.message })
  }
  if (error instanceof Fault && error.code.startsWith('PLATFORM_')) {
    const { detail = 'no detail' } = error
    return new Fault(code, {
      detail: error.code === 'PLATFORM_UNAVAILABLE' ? detail : `${error.code}: ${detail}`,
    })
  }
  return error
}
