/** Pages of the security audit. */
import { AuditPage, AuditQuery } from '../../identity/audit.ts'
import { operatorOperation } from '../operation.ts'

export const listAuditRecords = operatorOperation({
  method: 'GET',
  path: '/v1/access/audit',
  name: 'listAuditRecords',
  summary: 'Lists records of the security audit, newest first.',
  capability: 'operators:manage',
  query: AuditQuery,
  replies: { 200: AuditPage },
})

export const auditOperations = { listAuditRecords }
