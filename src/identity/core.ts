/** Dependencies of the rules in this folder. Each rule takes the part that it uses. */
import type { Database } from '../database/database.ts'
import type { System } from '../system/system.ts'
import type { RequestId } from '../value/ids.ts'
import type { Credentials } from './credentials.ts'

export interface IdentityCore {
  readonly database: Database
  readonly system: System
  readonly credentials: Credentials
}

/** The request that causes a change; null outside a request. */
export interface Origin {
  readonly requestId: RequestId | null
}

const MICROS_PER_SECOND = 1_000_000n
/**
 * Lifetimes (contract/management.md, Limits), in microseconds.
 * @limit Identity and keys: lifetime of an access token of an operator
 */
export const ACCESS_LIFETIME_MICROS = 600n * MICROS_PER_SECOND
/** @limit Identity and keys: lifetime of a refresh token of an operator */
export const REFRESH_LIFETIME_MICROS = 30n * 86_400n * MICROS_PER_SECOND
/**
 * Lifetime of a delegated invitation, and of one that recovers an owner's access.
 * @limit Identity and keys: lifetime of an invitation code
 */
export const INVITATION_LIFETIME_MICROS = 1_800n * MICROS_PER_SECOND
/** @limit Identity and keys: lifetime of the first-owner code */
export const BOOTSTRAP_LIFETIME_MICROS = 86_400n * MICROS_PER_SECOND
