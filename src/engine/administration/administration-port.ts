/** Shared by reads, changes and imports of Data Admin: the port, and failures as operators see. */
import type { DocumentStore } from '../../documents/store.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { type FunctionManifest, undeclaredFunction } from '../../value/manifest.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import { DOCUMENT_EXISTS, INVALID_CURSOR, OperationError } from '../calls/operation-error.ts'
import type { Committer } from '../commits/committer.ts'
import type { Cursors } from '../invocations/context-operations.ts'
import type { Mutations } from '../invocations/mutations.ts'
import type { ActiveCalls } from '../releases/active-calls.ts'
import type { Release } from '../releases/executable-release.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'

export interface AdministrationPort {
  readonly store: DocumentStore
  readonly committer: Pick<
    Committer,
    'durable' | 'pinSnapshot' | 'unpinSnapshot' | 'whenSnapshotsReach'
  >
  readonly preparations: Preparations
  readonly mutations: Mutations
  readonly inFlight: ActiveCalls
  readonly cursors: Cursors
  readonly system: System
}

/** Prefix of the Function in operation records; no Function of an author has a space. */
export const FUNCTION_PREFIX = 'data admin'

/** A Mutation has a definition; those of Data Admin have no code. */
export function definitionOf(kind: string): FunctionManifest {
  return undeclaredFunction(`${FUNCTION_PREFIX} ${kind}`, 'mutation')
}

/** Keeps the resources of the Release while the task runs, and names its failures for operators. */
export async function within<T>(
  { inFlight, preparations }: AdministrationPort,
  release: Release,
  task: (prepared: PreparedRelease) => Promise<T>,
): Promise<T> {
  const end = inFlight.begin(release)
  try {
    return await task(await preparations.prepare(release))
  } catch (error) {
    throw operatorFault(error)
  } finally {
    end()
  }
}

export function requireTable({ tables }: PreparedRelease, name: string): PreparedTable {
  const table = tables.get(name)
  if (table === undefined) throw new Fault('PRODUCT_NOT_FOUND', { detail: 'table' })
  return table
}

/** Returns the fields in the types of the schema. Throws PRODUCT_INVALID below `path`. */
export function checkValue(table: PreparedTable, value: ValueObject, path = 'value'): ValueObject {
  return checked(() => table.check(value, path) as ValueObject)
}

/** Returns the fields of a new document in the types of the schema. Throws as `checkValue` does. */
export function checkInserted(
  table: PreparedTable,
  value: ValueObject,
  path = 'value',
): ValueObject {
  const fields = checkValue(table, value, path)
  // An unknown member of an open union stands for a stored one, and there is none.
  return checked(() => table.projection?.fields.keep(null, fields, path) ?? fields)
}

function checked<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw invalid(error.path, error.rule)
  }
}

export function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}

/** Gives a failure of the engine the code under which an operator sees it. */
function operatorFault(error: unknown): unknown {
  if (error instanceof OperationError) {
    if (isStateConflict(error)) {
      return new Fault('PRODUCT_STATE_CONFLICT', { detail: error.message, cause: error })
    }
    if (error.cause instanceof ValidationError) {
      const { path, rule } = error.cause
      return invalid(path.replace(/^[a-zA-Z0-9]+/, 'value'), rule)
    }
    const path = error.name === INVALID_CURSOR ? 'after' : 'range'
    return new Fault('PRODUCT_INVALID', { violations: [{ path, rule: error.message }] })
  }
  if (isFault(error, 'OPERATION_REUSED')) return new Fault('PRODUCT_OPERATION_REUSED')
  if (isFault(error, 'LIMIT_EXCEEDED')) {
    return new Fault('PLATFORM_BODY_TOO_LARGE', { detail: error.detail, cause: error })
  }
  const passing = ['UNAVAILABLE', 'BUSY', 'WRITE_CONFLICT', 'DEADLINE_EXCEEDED'] as const
  if (isFault(error, ...passing, 'RESULT_UNCERTAIN')) {
    return new Fault('PRODUCT_UNAVAILABLE', { detail: error.detail ?? error.code, cause: error })
  }
  return error
}

/** Returns whether the ID of a document exists, or its fields violate a unique index. */
export function isStateConflict(error: unknown): boolean {
  return (
    error instanceof OperationError && (error.name === DOCUMENT_EXISTS || error.violated !== null)
  )
}
