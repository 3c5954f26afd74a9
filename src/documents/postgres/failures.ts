/** What a failure of PostgreSQL means for the store. */
import { QueryFailure } from '../../database/errors.ts'
import { AssertionFailure } from '../../errors/assert.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { ValidationError } from '../../value/validation-error.ts'

/**
 * Another server took the epoch: this one must not write, and what it reads may be behind. Or the
 * database is no longer the one that it was: what this server has in memory may be ahead.
 */
export class EpochLost extends Error {
  constructor() {
    super('another server has taken over the document database, or it has lost commits')
    this.name = 'EpochLost'
  }
}

/** UNAVAILABLE, or PRODUCT_CORRUPT where the same would fail again. */
export function storeFault(error: unknown): Fault {
  if (isFault(error)) return error
  if (error instanceof AssertionFailure || error instanceof ValidationError) {
    return new Fault('PRODUCT_CORRUPT', { detail: `documents: ${error.message}`, cause: error })
  }
  if (error instanceof QueryFailure) {
    // A statement that PostgreSQL refuses shows that the tables are not what this program wrote.
    const broken = error.kind === 'corrupt' || error.kind === 'programming'
    const detail = `documents: ${error.message}`
    return new Fault(broken ? 'PRODUCT_CORRUPT' : 'UNAVAILABLE', { detail })
  }
  const detail = error instanceof EpochLost ? error.message : 'an unknown failure'
  return new Fault('UNAVAILABLE', { detail: `documents: ${detail}`, cause: error })
}
