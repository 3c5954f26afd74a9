/**
 * Counts the uses of each Application Key and logs them once a minute (Document 2: per-key logs and
 * metrics). Keys come and go, so they cannot be names of metrics.
 */
import type { Logger } from '../../telemetry/log.ts'
import { UsagePeriods } from '../../telemetry/usage-periods.ts'
import type { CredentialId } from '../../value/ids.ts'
import type { ApplicationCaller } from './gateway.ts'

class Usage {
  /** Null for all keys beyond the first 1,000 of a period. */
  readonly caller: ApplicationCaller | null
  succeeded = 0
  /** Those of its rate included. */
  refused = 0
  failed = 0
  rateLimited = 0

  constructor(caller: ApplicationCaller | null) {
    this.caller = caller
  }
}

export class KeyUsage {
  readonly #log: Logger
  readonly #periods: UsagePeriods<CredentialId, Usage>

  constructor(log: Logger) {
    this.#log = log
    this.#periods = new UsagePeriods({
      others: () => new Usage(null),
      write: (usage) => this.#write(usage),
    })
  }

  /** Once for each request with a good key, with what its answer counts as. */
  answered(caller: ApplicationCaller, status: number): void {
    const { credentialId } = caller
    const usage =
      this.#periods.find(credentialId) ?? this.#periods.begin(credentialId, new Usage(caller))
    if (status < 400) usage.succeeded += 1
    else if (status < 500) usage.refused += 1
    else usage.failed += 1
    if (status === 429) usage.rateLimited += 1
  }

  /** Writes a record for each key that was used since the last time, and begins anew. */
  report(): void {
    this.#periods.report()
  }

  /** Writes what the last minute still lacks. */
  stop(): void {
    this.#periods.stop()
  }

  #write({ caller, ...figures }: Usage): void {
    const { succeeded, refused, failed } = figures
    const which = caller === null ? 'Further keys' : 'A key'
    this.#log.info('credential.usage', {
      message: `${which}: ${succeeded} answered, ${refused} refused, ${failed} failed.`,
      ...(caller !== null && { clientId: caller.clientId, credentialId: caller.credentialId }),
      ...figures,
    })
  }
}
