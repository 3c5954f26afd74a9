/** Every route of the management origin, for mount, the OpenAPI document and tests. */

import { applicationClientRoutes } from './application-clients.ts'
import type { BucketsApp } from './buckets/app.ts'
import { bucketRoutes } from './buckets/buckets.ts'
import { objectRoutes } from './buckets/objects.ts'
import { storageKeyRoutes } from './buckets/storage-keys.ts'
import { catalogRoutes } from './catalogs.ts'
import { channelRoutes } from './channels.ts'
import { configurationRoutes } from './configuration.ts'
import { cronRoutes } from './crons.ts'
import { dataRoutes } from './data.ts'
import { environmentRoutes } from './environments.ts'
import { type HealthApp, healthRoutes } from './health.ts'
import { type AuditApp, auditRoutes } from './identity/audit.ts'
import { type AuthApp, authRoutes } from './identity/auth.ts'
import { invitationOperationRoutes } from './identity/invitation-operations.ts'
import { type InvitationsApp, invitationRoutes } from './identity/invitations.ts'
import { managedGrantRoutes } from './identity/managed-grants.ts'
import { oidcRoutes } from './identity/oidc.ts'
import { type OperatorsApp, operatorRoutes } from './identity/operators.ts'
import { type ResourcesApp, resourceRoutes } from './identity/resources.ts'
import { type SessionsApp, sessionRoutes } from './identity/sessions.ts'
import { type InstancesApp, instanceRoutes } from './instances.ts'
import { type LogsApp, logRoutes } from './logs/logs.ts'
import { type MetricsApp, metricsRoutes } from './metrics.ts'
import { type OpenApiApp, openApiRoutes } from './openapi.ts'
import type { ProductApp } from './product-app.ts'
import { workspaceRoutes } from './publish.ts'
import { releaseRoutes } from './releases.ts'
import type { Route } from './route.ts'
import { scheduleRoutes } from './schedules.ts'
import { servingPolicyRoutes } from './serving-policy.ts'
import { statusRoutes } from './status.ts'

export type ManagementApp = AuditApp &
  AuthApp &
  BucketsApp &
  HealthApp &
  InstancesApp &
  InvitationsApp &
  LogsApp &
  MetricsApp &
  OpenApiApp &
  OperatorsApp &
  ProductApp &
  ResourcesApp &
  SessionsApp

export const managementRoutes: readonly Route<ManagementApp>[] = [
  ...(healthRoutes as readonly Route<ManagementApp>[]),
  ...(openApiRoutes as readonly Route<ManagementApp>[]),
  ...(authRoutes as readonly Route<ManagementApp>[]),
  ...(oidcRoutes as readonly Route<ManagementApp>[]),
  ...(managedGrantRoutes as readonly Route<ManagementApp>[]),
  ...(sessionRoutes as readonly Route<ManagementApp>[]),
  ...(resourceRoutes as readonly Route<ManagementApp>[]),
  ...(invitationRoutes as readonly Route<ManagementApp>[]),
  ...(invitationOperationRoutes as readonly Route<ManagementApp>[]),
  ...(operatorRoutes as readonly Route<ManagementApp>[]),
  ...(auditRoutes as readonly Route<ManagementApp>[]),
  ...(environmentRoutes as readonly Route<ManagementApp>[]),
  ...(statusRoutes as readonly Route<ManagementApp>[]),
  ...(workspaceRoutes as readonly Route<ManagementApp>[]),
  ...(releaseRoutes as readonly Route<ManagementApp>[]),
  ...(channelRoutes as readonly Route<ManagementApp>[]),
  ...(servingPolicyRoutes as readonly Route<ManagementApp>[]),
  ...(configurationRoutes as readonly Route<ManagementApp>[]),
  ...(applicationClientRoutes as readonly Route<ManagementApp>[]),
  ...(cronRoutes as readonly Route<ManagementApp>[]),
  ...(bucketRoutes as readonly Route<ManagementApp>[]),
  ...(storageKeyRoutes as readonly Route<ManagementApp>[]),
  ...(objectRoutes as readonly Route<ManagementApp>[]),
  ...(scheduleRoutes as readonly Route<ManagementApp>[]),
  ...(catalogRoutes as readonly Route<ManagementApp>[]),
  ...(dataRoutes as readonly Route<ManagementApp>[]),
  ...(instanceRoutes as readonly Route<ManagementApp>[]),
  ...(metricsRoutes as readonly Route<ManagementApp>[]),
  ...(logRoutes as readonly Route<ManagementApp>[]),
]
