/** The ends of spans whose operation failed. */
import { isFault } from '../../errors/fault.ts'
import type { SpanEnd } from './spans.ts'

/** Returns the end with the code. Mistakes of callers are outcomes, so only others are errors. */
export function failureEnd(error: unknown): SpanEnd {
  if (!isFault(error)) return { error: 'INTERNAL' }
  const attributes = { 'svc.error.code': error.code }
  return error.status < 500 ? { attributes } : { attributes, error: error.code }
}
