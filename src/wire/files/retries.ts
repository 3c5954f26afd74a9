/** Attempts of an Action, as manifests and catalogs have them. */
import {
  ATTEMPTS_MAX,
  BACKOFF_FACTOR_MAX,
  BACKOFF_MILLIS_MAX,
} from '../../value/scheduling/scheduled-work.ts'
import { integer } from '../fields.ts'
import { schema } from '../schema.ts'

export const RetryField = schema({
  maximumAttempts: integer(2, ATTEMPTS_MAX),
  backoff: {
    initialMillis: integer(1, BACKOFF_MILLIS_MAX),
    factor: `1 <= number <= ${BACKOFF_FACTOR_MAX}`,
    maximumMillis: integer(1, BACKOFF_MILLIS_MAX),
  },
})
