/**
 * Logs a record for each rejected request of an origin: the code and the broken rule, never the
 * received value. Records of one code are bounded per minute and credential or session, or per peer
 * where the request has neither. A later record counts the suppressed ones.
 */
import type { Code } from '../errors/codes.ts'
import { type Fault, reasonText } from '../errors/fault.ts'
import type { RecordedActor } from '../identity/actor.ts'
import type { CredentialName } from '../product/application-clients/application-keys.ts'
import type { LogFields, Logger } from '../telemetry/log.ts'
import type { Span } from '../telemetry/traces/spans.ts'
import { UsagePeriods } from '../telemetry/usage-periods.ts'
import type { InvocationId, ReleaseId, RequestId } from '../value/ids.ts'
import { type PeerBinding, peerOf } from './rate-limits.ts'

/** Records of one code, of one credential, session or peer, in one period. */
export const CODE_RECORDS_MAX = 10
/**
 * Peers with separate records in one period. A caller can use many addresses, so further peers
 * share one record.
 */
export const PEERS_MAX = 100

/** The known fields of a request at its rejection. */
export interface RejectedRequest {
  readonly requestId: RequestId
  readonly binding: PeerBinding | undefined
  readonly invocationId?: InvocationId | null
  readonly releaseId?: ReleaseId | null
  readonly function?: string | null
  readonly caller?: CredentialName | null
  /** Credential of a rejected key that was active before. */
  readonly rejectedKey?: CredentialName | null
  /** The key of an S3 client whose signature is valid. */
  readonly storageKeyId?: string | undefined
  readonly session?: RecordedActor | null
  /** The method and the path of the route, never as they were received. */
  readonly method?: string
  readonly route?: string
  readonly trace?: Pick<Span, 'logFields'> | null
}

/** The rejections of one credential, session or peer in one period. */
class Rejections {
  /** Log fields of the credential, session or peer; null for those that share one record. */
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
  /** Rejections by the ID of the credential or the session. */
  readonly #callers: UsagePeriods<string, Rejections>
  readonly #peers: UsagePeriods<string, Rejections>

  constructor(log: Logger) {
    this.#log = log
    const options = {
      others: () => new Rejections(null),
      write: (rejections: Rejections) => this.#writeSuppressed(rejections),
    }
    this.#callers = new UsagePeriods(options)
    this.#peers = new UsagePeriods({ ...options, subjectsMax: PEERS_MAX })
  }

  /** Counts a rejected request and writes its record, unless the period has enough of its code. */
  add(request: RejectedRequest, fault: Fault): void {
    const subject = subjectOf(request)
    if (!this.#rejectionsOf(subject).count(fault.code)) return
    const reason = reasonText(fault) ?? fault.message.replace(/\.$/, '')
    // A call that exceeds a limit while it runs may be the start of an overload.
    const isOverload = fault.code === 'LIMIT_EXCEEDED' && Boolean(request.invocationId)
    this.#log[isOverload || fault.status >= 500 ? 'warn' : 'info']('request.rejected', {
      message: `Rejected with ${fault.code}: ${reason}.`,
      requestId: request.requestId,
      method: request.method,
      route: request.route,
      invocationId: request.invocationId ?? undefined,
      releaseId: request.releaseId ?? undefined,
      function: request.function ?? undefined,
      ...subject,
      storageKeyId: request.storageKeyId,
      ...request.trace?.logFields,
      errorCode: fault.code,
      detail: reason,
      // The cause of a rejection below 500 may show what the caller sent.
      error: fault.status >= 500 ? fault.cause : undefined,
    })
  }

  /** Writes the counts of suppressed records since the last report, then resets them. */
  report(): void {
    this.#callers.report()
    this.#peers.report()
  }

  /** Stops the reports and writes the counts of the unfinished period. */
  stop(): void {
    this.#callers.stop()
    this.#peers.stop()
  }

  #rejectionsOf(subject: LogFields): Rejections {
    const { credentialId, sessionId, peer } = subject
    const periods = peer === undefined ? this.#callers : this.#peers
    const key = String(credentialId ?? sessionId ?? peer)
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

/** Returns the log fields of the credential or session of the request, otherwise of its peer. */
function subjectOf({ caller, rejectedKey, session, binding }: RejectedRequest): LogFields {
  const credential = caller ?? rejectedKey
  if (credential) return { clientId: credential.clientId, credentialId: credential.credentialId }
  if (session) return sessionFields(session)
  return { peer: peerOf(binding) }
}

/** Returns the log fields of a session; a derived one has its purpose. */
export function sessionFields({ operatorId, sessionId, purpose }: RecordedActor): LogFields {
  return { operatorId, sessionId, ...(purpose !== null && { purpose }) }
}
