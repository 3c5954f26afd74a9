/** Classifies failures of PostgreSQL for the store. */
import { QueryFailure } from '../../database/errors.ts'
import { Fault } from '../../errors/fault.ts'
import { faultOfStoredData } from '../store-faults.ts'

/**
 * Raised when another server took the epoch, so that this one must not write and may read stale
 * data, or when the database lost commits, so that the memory of this server may be ahead of it.
 */
export class EpochLost extends Error {
  constructor() {
    super('another server has taken over the document database, or it has lost commits')
    this.name = 'EpochLost'
  }
}

/** Returns UNAVAILABLE, or PRODUCT_CORRUPT for a failure that a retry cannot fix. */
export function storeFault(error: unknown): Fault {
  const known = faultOfStoredData(error)
  if (known !== null) return known
  if (error instanceof QueryFailure) {
    // If PostgreSQL rejects a statement, the tables are not those of this program.
    const broken = error.kind === 'corrupt' || error.kind === 'programming'
    const detail = `documents: ${error.message}`
    return new Fault(broken ? 'PRODUCT_CORRUPT' : 'UNAVAILABLE', { detail })
  }
  const detail = error instanceof EpochLost ? error.message : 'an unknown failure'
  return new Fault('UNAVAILABLE', { detail: `documents: ${detail}`, cause: error })
}
