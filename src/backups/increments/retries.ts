/** The pauses between attempts that fail. */
const RETRY_MILLIS_MIN = 1_000
const RETRY_MILLIS_MAX = 30_000

/** Returns the pause after this many attempts that failed before: 1 s, and up to 30 s. */
export function retryMillis(retries: number): number {
  return Math.min(RETRY_MILLIS_MAX, RETRY_MILLIS_MIN * 2 ** Math.min(retries, 10))
}
