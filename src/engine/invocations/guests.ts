/** Guests that a Function lets in, named from the seed of its call: a rerun names the same. */
import { sha256 } from '../../system/digests.ts'
import type { RunnerCall } from '../runners/runner-pool.ts'

/** Answers the bearer of a guest; the same request has the same answer. */
export type IssueGuest = (request: {
  /** 10 bytes. */
  readonly entropy: Uint8Array
  readonly nowMicros: bigint
  readonly expiresInSeconds: number
}) => string

/** Answers Stored JSON. `count` numbers the guests of the call. */
export function guestOf(
  issueGuest: IssueGuest,
  { seed, nowMicros }: Pick<RunnerCall, 'seed' | 'nowMicros'>,
  { count, expiresInSeconds }: { readonly count: number; readonly expiresInSeconds: number },
): string {
  const entropy = new Uint8Array(sha256(`${seed}guest/${count}`).subarray(0, 10))
  return JSON.stringify(issueGuest({ entropy, nowMicros, expiresInSeconds }))
}
