/**
 * Logs a record for each rejected request: the code and the broken rule, never the received value.
 * Records of one code are bounded per minute and credential, or per peer where the request has no
 * credential. A later record counts the suppressed ones.
 */
import type { Code } from '../../errors/codes.ts'
import { type Fault, reasonOf } from '../../errors/fault.ts'
import type { LogFields, Logger } from '../../telemetry/log.ts'
import { UsagePeriods } from '../../telemetry/usage-periods.ts'
import { peerOf } from '../rate-limits.ts'
import type { CredentialName, Incoming } from './incoming.ts'

/** Records of one code, of one credential or peer, in one period. */
export const CODE_RECORDS_MAX = 10
/** Peers with records of their own in one period. Bounded, since a caller can use many. */
export const PEERS_MAX = 100

/** The known fields of a request at its rejection. */
export type RejectedRequest = Pick<Incoming, 'requestId' | 'binding'> &
  Partial<Pick<Incoming, 'invocationId' | 'releaseId' | 'function' | 'caller' | 'rejectedKey'>> & {
    /** The key of an S3 client whose signature is valid. */
    readonly storageKeyId?: string | undefined
  }

/** The rejections of one credential or peer in one period. */
class Rejections {
  /** Log fields of the credential or peer; null for those that share one record. */
  readonly subject: LogFields | null
  readonly byCode = new Map<Code, number>()

  constructor(subject: LogFields | null) {
    this.subject = subject
  }

  /** Counts a rejection; returns whether it gets a record. */
  count(code: Code): boolean {
    const count = (this.byCode.get(code) ?? 0) + 1
    this.byCode.set(code, count)
    return count <= CODE_RECORDS_MAX
  }
}

export class RejectionLog {
  readonly #log: Logger
  readonly #credentials: UsagePeriods<string, Rejections>
  readonly #peers: UsagePeriods<string, Rejections>

  constructor(log: Logger) {
    this.#log = log
    const options = {
      others: () => new Rejections(null),
      write: (rejections: Rejections) => this.#writeSuppressed(rejections),
    }
    this.#credentials = new UsagePeriods(options)
    this.#peers = new UsagePeriods({ ...options, subjectsMax: PEERS_MAX })
  }

  /** Called once for each rejected request. */
  add(request: RejectedRequest, fault: Fault): void {
    const credential = request.caller ?? request.rejectedKey ?? null
    const subject = credential === null ? peerFields(request) : credentialFields(credential)
    const rejections = this.#rejectionsOf(credential, subject)
    if (!rejections.count(fault.code)) return
    const reason = reasonOf(fault) ?? fault.message.replace(/\.$/, '')
    // A call that exceeds a limit while it runs may be the start of an overload.
    const isOverload = fault.code === 'LIMIT_EXCEEDED' && Boolean(request.invocationId)
    this.#log[isOverload || fault.status >= 500 ? 'warn' : 'info']('request.rejected', {
      message: `Rejected with ${fault.code}: ${reason}.`,
      requestId: request.requestId,
      invocationId: request.invocationId ?? undefined,
      releaseId: request.releaseId ?? undefined,
      function: request.function ?? undefined,
      ...subject,
      storageKeyId: request.storageKeyId,
      errorCode: fault.code,
      detail: reason,
    })
  }

  /** Writes the counts of suppressed records since the last report, then resets them. */
  report(): void {
    this.#credentials.report()
    this.#peers.report()
  }

  /** Stops the reports and writes the counts of the unfinished period. */
  stop(): void {
    this.#credentials.stop()
    this.#peers.stop()
  }

  #rejectionsOf(credential: CredentialName | null, subject: LogFields): Rejections {
    const periods = credential === null ? this.#peers : this.#credentials
    const key = credential?.credentialId ?? String(subject.peer)
    return periods.find(key) ?? periods.begin(key, new Rejections(subject))
  }

  #writeSuppressed({ subject, byCode }: Rejections): void {
    const beyond = [...byCode].filter(([, count]) => count > CODE_RECORDS_MAX)
    if (beyond.length === 0) return
    const suppressed = beyond.map(([code, count]) => [code, count - CODE_RECORDS_MAX] as const)
    const total = suppressed.reduce((sum, [, count]) => sum + count, 0)
    this.#log.info('request.rejections_suppressed', {
      message: `${total} more requests were rejected in the last minute without a record.`,
      ...subject,
      suppressed: Object.fromEntries(suppressed),
    })
  }
}

function credentialFields({ clientId, credentialId }: CredentialName): LogFields {
  return { clientId, credentialId }
}

function peerFields({ binding }: RejectedRequest): LogFields {
  return { peer: peerOf(binding) }
}
