/** Every route of the management origin, for mount, the OpenAPI document and tests. */

import { applicationClientRoutes } from './application-clients.ts'
import { type BackupsApp, backupRoutes } from './backups.ts'
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
import { invocationRoutes } from './functions/invocations.ts'
import { type HealthApp, healthRoutes } from './health.ts'
import { httpMountRoutes } from './http-mounts.ts'
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
import { migrationRoutes } from './migrations.ts'
import { type OpenApiApp, openApiRoutes } from './openapi.ts'
import type { ProductApp } from './product-app.ts'
import { workspaceRoutes } from './publish.ts'
import { releaseRoutes } from './releases.ts'
import type { Route } from './route.ts'
import { scheduleRoutes } from './schedules.ts'
import { servingPolicyRoutes } from './serving-policy.ts'
import { statusRoutes } from './status.ts'

/** The parts of the application that routes of one Environment use. */
export type EnvironmentApp = BackupsApp &
  BucketsApp &
  InstancesApp &
  LogsApp &
  MetricsApp &
  ProductApp

export type ManagementApp = EnvironmentApp &
  AuditApp &
  AuthApp &
  HealthApp &
  InvitationsApp &
  OpenApiApp &
  OperatorsApp &
  ResourcesApp &
  SessionsApp

/** The routes of one Environment, which need no identity of their own. */
export const routesOfEnvironment: readonly Route<EnvironmentApp>[] = [
  ...(environmentRoutes as readonly Route<EnvironmentApp>[]),
  ...(statusRoutes as readonly Route<EnvironmentApp>[]),
  ...(workspaceRoutes as readonly Route<EnvironmentApp>[]),
  ...(releaseRoutes as readonly Route<EnvironmentApp>[]),
  ...(channelRoutes as readonly Route<EnvironmentApp>[]),
  ...(servingPolicyRoutes as readonly Route<EnvironmentApp>[]),
  ...(configurationRoutes as readonly Route<EnvironmentApp>[]),
  ...(applicationClientRoutes as readonly Route<EnvironmentApp>[]),
  ...(cronRoutes as readonly Route<EnvironmentApp>[]),
  ...(httpMountRoutes as readonly Route<EnvironmentApp>[]),
  ...(migrationRoutes as readonly Route<EnvironmentApp>[]),
  ...(bucketRoutes as readonly Route<EnvironmentApp>[]),
  ...(storageKeyRoutes as readonly Route<EnvironmentApp>[]),
  ...(objectRoutes as readonly Route<EnvironmentApp>[]),
  ...(scheduleRoutes as readonly Route<EnvironmentApp>[]),
  ...(catalogRoutes as readonly Route<EnvironmentApp>[]),
  ...(invocationRoutes as readonly Route<EnvironmentApp>[]),
  ...(dataRoutes as readonly Route<EnvironmentApp>[]),
  ...(instanceRoutes as readonly Route<EnvironmentApp>[]),
  ...(metricsRoutes as readonly Route<EnvironmentApp>[]),
  ...(logRoutes as readonly Route<EnvironmentApp>[]),
  ...(backupRoutes as readonly Route<EnvironmentApp>[]),
]

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
  ...(routesOfEnvironment as readonly Route<ManagementApp>[]),
]
