/** Delays between the attempts of scheduled Actions that may run more than once. */
import type { RetryManifest } from '../../value/manifest.ts'

/** Milliseconds until the next attempt; null after the last one and without a declaration. */
export function retryDelayMillis(
  retry: RetryManifest | undefined,
  attempts: number,
): number | null {
  if (retry === undefined || attempts >= retry.maximumAttempts) return null
  const { initialMillis, factor, maximumMillis } = retry.backoff
  return Math.min(maximumMillis, initialMillis * factor ** (attempts - 1))
}
