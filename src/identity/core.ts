/** What the rules of this folder work with. Each takes the part that it uses. */
import type { Database } from '../database/database.ts'
import type { System } from '../system/system.ts'
import type { RequestId } from '../value/ids.ts'
import type { Credentials } from './credentials.ts'

export interface IdentityCore {
  readonly database: Database
  readonly system: System
  readonly credentials: Credentials
}

/** Which request a change belongs to; null outside of one. */
export interface Origin {
  readonly requestId: RequestId | null
}

const MICROS_PER_SECOND = 1_000_000n
/**
 * Lifetimes (Document 1, Limits), in microseconds.
 * @limit Identity and keys: lifetime of an access token of an operator
 */
export const ACCESS_LIFETIME_MICROS = 600n * MICROS_PER_SECOND
/** @limit Identity and keys: lifetime of a refresh token of an operator */
export const REFRESH_LIFETIME_MICROS = 30n * 86_400n * MICROS_PER_SECOND
/**
 * Of a delegated invitation, and of one that lets an owner in again.
 * @limit Identity and keys: lifetime of an invitation code
 */
export const INVITATION_LIFETIME_MICROS = 1_800n * MICROS_PER_SECOND
/** @limit Identity and keys: lifetime of the first-owner code */
export const BOOTSTRAP_LIFETIME_MICROS = 86_400n * MICROS_PER_SECOND
