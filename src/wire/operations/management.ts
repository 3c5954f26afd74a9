/** Every operation of the management origin, in the order of the OpenAPI document. */
import { applicationClientOperations } from './application-clients.ts'
import { backupOperations } from './backups.ts'
import { bucketOperations } from './buckets/buckets.ts'
import { objectOperations } from './buckets/objects.ts'
import { storageKeyOperations } from './buckets/storage-keys.ts'
import { catalogOperations } from './catalogs.ts'
import { channelOperations } from './channels.ts'
import { configurationOperations } from './configuration.ts'
import { cronOperations } from './crons.ts'
import { dataOperations } from './data.ts'
import { environmentOperations } from './environments.ts'
import { invocationOperations } from './functions/invocations.ts'
import { healthOperations } from './health.ts'
import { httpMountOperations } from './http-mounts.ts'
import { auditOperations } from './identity/audit.ts'
import { authOperations } from './identity/auth.ts'
import { invitationOperationOperations } from './identity/invitation-operations.ts'
import { invitationOperations } from './identity/invitations.ts'
import { managedGrantOperations } from './identity/managed-grants.ts'
import { oidcOperations } from './identity/oidc.ts'
import { operatorOperations } from './identity/operators.ts'
import { resourceOperations } from './identity/resources.ts'
import { sessionOperations } from './identity/sessions.ts'
import { instanceOperations } from './instances.ts'
import { logOperations } from './logs.ts'
import { metricsOperations } from './metrics.ts'
import { migrationOperations } from './migrations.ts'
import { openApiOperations } from './openapi.ts'
import type { ManagementOperation } from './operation.ts'
import { releaseOperations } from './releases.ts'
import { scheduleOperations } from './schedules.ts'
import { servingPolicyOperations } from './serving-policy.ts'
import { statusOperations } from './status.ts'
import { workspaceOperations } from './workspace.ts'

export const MANAGEMENT_OPERATIONS: readonly ManagementOperation[] = [
  healthOperations,
  openApiOperations,
  authOperations,
  oidcOperations,
  managedGrantOperations,
  sessionOperations,
  resourceOperations,
  invitationOperations,
  invitationOperationOperations,
  operatorOperations,
  auditOperations,
  environmentOperations,
  statusOperations,
  workspaceOperations,
  releaseOperations,
  channelOperations,
  servingPolicyOperations,
  configurationOperations,
  applicationClientOperations,
  cronOperations,
  httpMountOperations,
  migrationOperations,
  bucketOperations,
  storageKeyOperations,
  objectOperations,
  scheduleOperations,
  catalogOperations,
  invocationOperations,
  dataOperations,
  instanceOperations,
  metricsOperations,
  logOperations,
  backupOperations,
].flatMap((operations): ManagementOperation[] => Object.values(operations))
