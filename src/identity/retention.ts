/**
 * Removes records of the audit and ended sessions after their time, in small transactions. Servers
 * that share the database skip the rows of each other.
 */
import { deleteOldAudit } from '../database/identity/audit.ts'
import { deleteEndedSessions } from '../database/identity/sessions.ts'
import { deleteExpiredTokenUses } from '../database/identity/token-uses.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { CoalescingTask } from '../system/concurrency.ts'
import type { Logger } from '../telemetry/log.ts'
import type { IdentityCore } from './core.ts'
import { CLOCK_SKEW_SECONDS } from './oidc/provider.ts'

export interface RetentionOptions extends Pick<IdentityCore, 'database' | 'system'> {
  readonly log: Logger
  readonly auditDays: number
  /** Counted from the end of a session. */
  readonly sessionDays: number
}

/** Retention is set in whole days, so an hour more is of no account. */
const PERIOD_MILLIS = 3_600_000
/** Rows of one transaction, so that no other one waits for long. */
const BATCH_ROWS = 1_000
const MICROS_PER_SECOND = 1_000_000n
const MICROS_PER_DAY = 86_400n * MICROS_PER_SECOND

type Removal = (tx: Tx, beforeMicros: bigint, limit: number) => Promise<number>

export class IdentityRetention {
  readonly #options: RetentionOptions
  readonly #runs: CoalescingTask
  readonly #timer: ReturnType<typeof setInterval>

  /** Runs at once, and then every hour. */
  constructor(options: RetentionOptions) {
    this.#options = options
    this.#runs = new CoalescingTask(
      () => this.#remove(),
      (error) => options.log.warn('identity.retention_failed', { error }),
    )
    this.#timer = setInterval(() => this.#runs.start(), PERIOD_MILLIS)
    this.#timer.unref()
    this.#runs.start()
  }

  /** Removes what is due now. Resolves when the run has ended. */
  async run(): Promise<void> {
    this.#runs.start()
    await this.#runs.whenIdle()
  }

  /** Resolves after the transaction that runs. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#runs.close()
  }

  async #remove(): Promise<void> {
    const { log, auditDays, sessionDays } = this.#options
    // First, since a session stays while a token that opened it is recorded.
    await this.#removeBatches(
      deleteExpiredTokenUses,
      BigInt(CLOCK_SKEW_SECONDS) * MICROS_PER_SECOND,
    )
    const sessions = await this.#removeBatches(
      deleteEndedSessions,
      BigInt(sessionDays) * MICROS_PER_DAY,
    )
    const audits = await this.#removeBatches(deleteOldAudit, BigInt(auditDays) * MICROS_PER_DAY)
    if (sessions + audits > 0) log.info('identity.records_removed', { audits, sessions })
  }

  /** Returns the number of removed rows. */
  async #removeBatches(removal: Removal, ageMicros: bigint): Promise<number> {
    const { database, system } = this.#options
    const before = system.nowMicros() - ageMicros
    let removed = 0
    while (!this.#runs.isClosed) {
      const count = await transaction(database, (tx) => removal(tx, before, BATCH_ROWS))
      removed += count
      if (count < BATCH_ROWS) break
    }
    return removed
  }
}
