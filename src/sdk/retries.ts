/** Checks `retry` of an Action: the number and the pauses of attempts when it is scheduled. */
import type { RetryManifest } from '../value/manifest.ts'
import {
  ATTEMPTS_MAX,
  BACKOFF_FACTOR_MAX,
  BACKOFF_MILLIS_MAX,
  durationMillis,
} from '../value/scheduling/scheduled-work.ts'
import { DefinitionError, isPlainObject, rejectUnknownOptions } from './definition-errors.ts'

const FACTOR = 2
const MAXIMUM_MILLIS = 3_600_000

/** Returns the checked declaration. Throws DefinitionError if it is invalid. */
export function parseRetry(value: unknown, owner: string): RetryManifest {
  if (!isPlainObject(value) || !isPlainObject(value.backoff)) {
    throw new DefinitionError(
      `${owner} retry is incomplete`,
      'Write { maximumAttempts: 5, backoff: { initial: { seconds: 10 } } }',
    )
  }
  rejectUnknownOptions(value, ['maximumAttempts', 'backoff'], `${owner} retry`)
  rejectUnknownOptions(value.backoff, ['initial', 'factor', 'maximum'], `${owner} retry.backoff`)
  const { maximumAttempts, backoff } = value
  const { initial, factor = FACTOR, maximum } = backoff as Record<string, unknown>
  if (!Number.isInteger(maximumAttempts) || !isWithin(maximumAttempts, 2, ATTEMPTS_MAX)) {
    throw new DefinitionError(
      `${owner} retry.maximumAttempts is not a number of attempts`,
      `Use a whole number from 2 to ${ATTEMPTS_MAX}, which counts the first attempt`,
    )
  }
  if (!isWithin(factor, 1, BACKOFF_FACTOR_MAX)) {
    throw new DefinitionError(
      `${owner} retry.backoff.factor is not a factor`,
      `Use a number from 1 to ${BACKOFF_FACTOR_MAX}, or leave it out for ${FACTOR}`,
    )
  }
  const initialMillis = pauseOf(initial, `${owner} retry.backoff.initial`)
  const otherwise = Math.max(initialMillis, MAXIMUM_MILLIS)
  const maximumMillis =
    maximum === undefined ? otherwise : pauseOf(maximum, `${owner} retry.backoff.maximum`)
  return { maximumAttempts, backoff: { initialMillis, factor, maximumMillis } }
}

function isWithin(value: unknown, minimum: number, maximum: number): value is number {
  return typeof value === 'number' && value >= minimum && value <= maximum
}

function pauseOf(value: unknown, owner: string): number {
  const millis = durationMillis(value)
  if (millis !== null && isWithin(millis, 1, BACKOFF_MILLIS_MAX)) return millis
  throw new DefinitionError(
    `${owner} is not a pause from 1 millisecond to 1 day`,
    'Write an object of units, such as { seconds: 10 } or { minutes: 5 }',
  )
}
