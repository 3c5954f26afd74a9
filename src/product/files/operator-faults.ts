/** Codes under which an operator sees failures of stored files. */
import { Fault, isFault } from '../../errors/fault.ts'
import type { BucketRule } from '../buckets/admission.ts'

/**
 * Rethrows an error: a rule of the bucket becomes PLATFORM_BODY_TOO_LARGE or
 * PRODUCT_STATE_CONFLICT, and a temporary failure becomes PRODUCT_UNAVAILABLE.
 */
export function rethrowForOperator(error: unknown): never {
  if (isFault(error, 'LIMIT_EXCEEDED')) {
    const { detail, violations, cause } = error
    const rule = violations[0]?.path as BucketRule | undefined
    const isLarge = rule === undefined || rule === 'maximumObjectBytes'
    const code = isLarge ? 'PLATFORM_BODY_TOO_LARGE' : 'PRODUCT_STATE_CONFLICT'
    throw new Fault(code, { detail, violations, cause })
  }
  const passing = ['UNAVAILABLE', 'BUSY', 'WRITE_CONFLICT', 'DEADLINE_EXCEEDED'] as const
  if (isFault(error, ...passing, 'RESULT_UNCERTAIN')) {
    throw new Fault('PRODUCT_UNAVAILABLE', { detail: error.detail ?? error.code, cause: error })
  }
  if (isFault(error, 'INTERNAL')) {
    throw new Fault('PLATFORM_INTERNAL', { detail: error.detail, cause: error })
  }
  throw error
}
