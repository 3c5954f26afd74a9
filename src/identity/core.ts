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
