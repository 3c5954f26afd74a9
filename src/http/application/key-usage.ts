/**
 * Counts the uses of each Application Key and logs them once a minute (contract/application.md,
 * Application Keys). Metrics do not have them: keys are created and revoked, and names of metrics
 * are fixed.
 */
import type { Logger } from '../../telemetry/log.ts'
import { UsagePeriods } from '../../telemetry/usage-periods.ts'
import type { CredentialId } from '../../value/ids.ts'
import type { ApplicationCaller } from './incoming.ts'

class Usage {
  /** Null for the record that counts all keys after the first 1,000 of a period together. */
  readonly caller: ApplicationCaller | null
  succeeded = 0
  /** Requests with a 4xx status, including those over the rate limit. */
  rejected = 0
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

  /** Counts a request with a valid key. `status` is the counted status of its response. */
  answered(caller: ApplicationCaller, status: number): void {
    const { credentialId } = caller
    const usage =
      this.#periods.find(credentialId) ?? this.#periods.begin(credentialId, new Usage(caller))
    if (status < 400) usage.succeeded += 1
    else if (status < 500) usage.rejected += 1
    else usage.failed += 1
    if (status === 429) usage.rateLimited += 1
  }

  /** Writes a record for each key used since the last report, then resets the counts. */
  report(): void {
    this.#periods.report()
  }

  /** Stops the reports and writes the records of the unfinished period. */
  stop(): void {
    this.#periods.stop()
  }

  #write({ caller, ...counts }: Usage): void {
    const { succeeded, rejected, failed } = counts
    const which = caller === null ? 'Further keys' : 'A key'
    this.#log.info('credential.usage', {
      message: `${which}: ${succeeded} answered, ${rejected} rejected, ${failed} failed.`,
      ...(caller !== null && { clientId: caller.clientId, credentialId: caller.credentialId }),
      ...counts,
    })
  }
}
