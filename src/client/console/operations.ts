/**
 * The management operations that the page of the console may use, by their names: those that a page
 * needs, none with a token of an operator in its response. Those that make or reveal a key of the
 * application answer with it, for the person who asked (decision 0213), and so does the one that
 * invites with its code. Operations whose response or body is not JSON have lists of their own.
 */
import {
  createApplicationClient,
  createCredential,
  deleteCredential,
  listApplicationClients,
  listCredentials,
  revealKey,
  revokeCredential,
  rotateCredential,
} from '../../wire/operations/application-clients.ts'
import { createBackup, listBackups } from '../../wire/operations/backups.ts'
import {
  archiveBucket,
  createBucket,
  listBuckets,
  readBucket,
  replaceBucket,
} from '../../wire/operations/buckets/buckets.ts'
import {
  deleteObject,
  listObjects,
  putObject,
  readObject,
} from '../../wire/operations/buckets/objects.ts'
import {
  issueStorageKey,
  listStorageKeys,
  revokeStorageKey,
  rotateStorageKey,
} from '../../wire/operations/buckets/storage-keys.ts'
import { catalogOperations } from '../../wire/operations/catalogs.ts'
import { promoteRelease, rollbackChannel } from '../../wire/operations/channels.ts'
import {
  deleteConfiguration,
  listConfiguration,
  listConfigurationChanges,
  setConfiguration,
} from '../../wire/operations/configuration.ts'
import { activateCron, listCrons, runCron } from '../../wire/operations/crons.ts'
import {
  deleteDocument,
  importDocuments,
  insertDocument,
  queryDocuments,
  readDocument,
  replaceDocument,
} from '../../wire/operations/data.ts'
import { readEnvironment } from '../../wire/operations/environments.ts'
import { invokeFunction } from '../../wire/operations/functions/invocations.ts'
import {
  listDeliveries,
  listMounts,
  readDelivery,
  replayDelivery,
} from '../../wire/operations/http-mounts.ts'
import { listAuditRecords } from '../../wire/operations/identity/audit.ts'
import { issueInvitation, revokeInvitation } from '../../wire/operations/identity/invitations.ts'
import {
  changeGrant,
  disableOperator,
  enableOperator,
  listOperatorSessions,
  listOperators,
} from '../../wire/operations/identity/operators.ts'
import { listSessions, revokeSession } from '../../wire/operations/identity/sessions.ts'
import { readHealth, runDoctor } from '../../wire/operations/instances.ts'
import { listLogs } from '../../wire/operations/logs.ts'
import { readFunctionFigures, readMetrics } from '../../wire/operations/metrics.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import { retireRelease, validateRelease } from '../../wire/operations/releases.ts'
import { cancelScheduled, listScheduled } from '../../wire/operations/schedules.ts'
import { readServingPolicy, setServingPolicy } from '../../wire/operations/serving-policy.ts'
import { readStatus } from '../../wire/operations/status.ts'

export const CONSOLE_OPERATIONS = {
  ...catalogOperations,
  readHealth,
  readEnvironment,
  readMetrics,
  readFunctionFigures,
  readStatus,
  readServingPolicy,
  setServingPolicy,
  promoteRelease,
  rollbackChannel,
  retireRelease,
  listLogs,
  queryDocuments,
  readDocument,
  insertDocument,
  replaceDocument,
  deleteDocument,
  importDocuments,
  // Schedules
  listCrons,
  activateCron,
  runCron,
  listScheduled,
  cancelScheduled,
  // Files
  listBuckets,
  createBucket,
  readBucket,
  replaceBucket,
  archiveBucket,
  listObjects,
  deleteObject,
  listStorageKeys,
  issueStorageKey,
  rotateStorageKey,
  revokeStorageKey,
  // Functions
  invokeFunction,
  // Releases
  validateRelease,
  // Clients and keys
  listApplicationClients,
  createApplicationClient,
  listCredentials,
  createCredential,
  rotateCredential,
  revealKey,
  revokeCredential,
  deleteCredential,
  // Configuration
  listConfiguration,
  listConfigurationChanges,
  setConfiguration,
  deleteConfiguration,
  // HTTP
  listMounts,
  listDeliveries,
  readDelivery,
  replayDelivery,
  // Operators
  listOperators,
  listOperatorSessions,
  issueInvitation,
  revokeInvitation,
  changeGrant,
  disableOperator,
  enableOperator,
  // Sessions
  listSessions,
  revokeSession,
  // Audit
  listAuditRecords,
  // Backups
  listBackups,
  createBackup,
  // Doctor
  runDoctor,
} as const

export type ConsoleOperations = typeof CONSOLE_OPERATIONS
export type ConsoleOperationName = keyof ConsoleOperations

/** Operations whose response is a file that the browser saves. */
export const CONSOLE_DOWNLOADS = {
  readObject,
} as const

export type ConsoleDownloads = typeof CONSOLE_DOWNLOADS

/** Operations whose body is a file that the person chose. */
export const CONSOLE_UPLOADS = {
  putObject,
} as const

export type ConsoleUploads = typeof CONSOLE_UPLOADS

/** Returns the operation of a name; null for one that the page may not use. */
export function consoleOperation(name: string): ManagementOperation | null {
  return operationIn(CONSOLE_OPERATIONS, name)
}

export function consoleDownload(name: string): ManagementOperation | null {
  return operationIn(CONSOLE_DOWNLOADS, name)
}

export function consoleUpload(name: string): ManagementOperation | null {
  return operationIn(CONSOLE_UPLOADS, name)
}

function operationIn(
  list: Readonly<Record<string, ManagementOperation>>,
  name: string,
): ManagementOperation | null {
  return Object.hasOwn(list, name) ? list[name]! : null
}
