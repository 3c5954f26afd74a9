/** Faults that both document stores raise. */
import { AssertionFailure } from '../errors/assert.ts'
import { Fault, isFault } from '../errors/fault.ts'
import { ValidationError } from '../value/validation-error.ts'

export function unavailable(detail: string): Fault {
  return new Fault('UNAVAILABLE', { detail: `documents: ${detail}` })
}

/** The fault of a read by a Release that was retired meanwhile, together with its index. */
export function indexDropped(): Fault {
  return unavailable('the index was dropped')
}

export function snapshotGone(): Fault {
  return unavailable('the snapshot is older than what is kept')
}

/**
 * The fault of an error that the database did not raise: PRODUCT_CORRUPT for stored data that
 * breaks an invariant. Returns null for any other error, which the store has to classify itself.
 */
export function faultOfStoredData(error: unknown): Fault | null {
  if (isFault(error)) return error
  if (error instanceof AssertionFailure || error instanceof ValidationError) {
    return new Fault('PRODUCT_CORRUPT', { detail: `documents: ${error.message}`, cause: error })
  }
  return null
}
