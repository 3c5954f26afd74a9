/**
 * Guest identities that a Function issues. They derive from the seed of the call, so every attempt
 * issues the same ones.
 */
import { sha256 } from '../../system/digests.ts'
import type { RunnerCall } from '../calls/outcomes.ts'

/** Returns the bearer token of a guest, which is equal for equal requests. */
export type IssueGuest = (request: {
  /** 10 bytes. */
  readonly entropy: Uint8Array
  readonly nowMicros: bigint
  readonly expiresInSeconds: number
}) => string

/** Issues the guest with the number `count` of the call. Returns its token as stored JSON. */
export function issueSeededGuest(
  issueGuest: IssueGuest,
  { seed, nowMicros }: Pick<RunnerCall, 'seed' | 'nowMicros'>,
  { count, expiresInSeconds }: { readonly count: number; readonly expiresInSeconds: number },
): string {
  const entropy = new Uint8Array(sha256(`${seed}guest/${count}`).subarray(0, 10))
  return JSON.stringify(issueGuest({ entropy, nowMicros, expiresInSeconds }))
}
