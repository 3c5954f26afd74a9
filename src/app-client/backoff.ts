/** Delays between attempts: exponential with full jitter, so that clients do not return at once. */
import type { Platform } from './platform.ts'

export interface Backoff {
  /** Bound of the first delay in milliseconds; each further bound is twice the previous one. */
  readonly baseMillis: number
  readonly capMillis: number
}

export const CALL_BACKOFF: Backoff = { baseMillis: 250, capMillis: 5_000 }
export const CONNECTION_BACKOFF: Backoff = { baseMillis: 500, capMillis: 30_000 }

/** Returns a delay in milliseconds; `failures` counts from 1. */
export function backoffMillis(
  { baseMillis, capMillis }: Backoff,
  failures: number,
  { random }: Pick<Platform, 'random'>,
): number {
  return random() * Math.min(capMillis, baseMillis * 2 ** Math.min(failures - 1, 20))
}
