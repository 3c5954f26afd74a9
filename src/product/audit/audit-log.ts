/** Writes audit records to the log of the Environment too, as its stream `audit`. */
import type { Logger } from '../../telemetry/log.ts'
import type { AuditSink } from './audit-outbox.ts'

/**
 * Returns a sink that logs each record once the trail has it. The trail is the authority: a record
 * that is delivered again after a crash is logged again, with the same `auditId`.
 */
export function loggedAudit(sink: AuditSink, log: Logger): AuditSink {
  return async (record) => {
    await sink(record)
    const { operation, outcome, auditId, actor, credentialId, subject } = record
    log.info(operation, {
      stream: 'audit',
      message: `${operation} ${outcome}.`,
      outcome,
      auditId,
      operatorId: actor ?? undefined,
      subject,
      credentialId: credentialId ?? undefined,
      requestId: record.requestId ?? undefined,
      operationId: record.operationId ?? undefined,
      sessionId: record.sessionId ?? undefined,
      purpose: record.purpose ?? undefined,
    })
  }
}
