/** Settings of how long the identity database keeps records that can no longer change. */
import { DAYS } from './logs.ts'
import { type ProcessEnvironment, wholeNumber } from './sources.ts'

export interface RetentionSettings {
  /** Days after which records of the security audit are removed. */
  readonly auditDays: number
  /** Days after the end of a session after which it is removed. */
  readonly sessionDays: number
}

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readRetention(environment: ProcessEnvironment): RetentionSettings {
  return {
    auditDays: wholeNumber(environment, 'SERVICE_AUDIT_RETENTION_DAYS', DAYS),
    sessionDays: wholeNumber(environment, 'SERVICE_SESSION_RETENTION_DAYS', DAYS),
  }
}
