/**
 * Audit of rejected logins of workloads. A record names the provider, never a claim of the token.
 * Any client can present tokens, so the records are bounded; the log has the reasons and the rest.
 */
import { transaction } from '../../database/transaction.ts'
import { recordAudit } from '../audit.ts'
import type { IdentityCore, Origin } from '../core.ts'

/** Records of one server in one period. */
const RECORDS_MAX = 10
const PERIOD_MICROS = 60_000_000n

export class DeniedLogins {
  #beganAtMicros = 0n
  #count = 0

  /**
   * Records a rejected login unless the period has its records. `providerId` is null for a token
   * whose issuer is not configured. Throws PLATFORM_UNAVAILABLE.
   */
  async record(
    { database, system }: IdentityCore,
    providerId: string | null,
    { requestId }: Origin,
  ): Promise<void> {
    const atMicros = system.nowMicros()
    const age = atMicros - this.#beganAtMicros
    if (age < 0n || age >= PERIOD_MICROS) {
      this.#beganAtMicros = atMicros
      this.#count = 0
    }
    this.#count += 1
    if (this.#count > RECORDS_MAX) return
    // The caller is not known to be the workload, so there is no actor.
    const facts = { actor: null, subject: providerId, atMicros, requestId }
    await transaction(database, (tx) => recordAudit(tx, system, 'identity.login', facts, 'denied'))
  }
}
