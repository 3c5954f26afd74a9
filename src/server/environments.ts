/** Opens the Product Environment of a server: root, documents, engine and rules. */

import type { BackedUpPeppers } from '../backups/base/base-records.ts'
import type { Backups } from '../backups/service/backups.ts'
import type { Database } from '../database/database.ts'
import type { DocumentStore } from '../documents/store.ts'
import { createEngine } from '../engine/create-engine.ts'
import type { Engine } from '../engine/engine.ts'
import type { IssueGuest } from '../engine/invocations/guest-identities.ts'
import type { ContainmentLevel } from '../engine/runners/containment-checks.ts'
import {
  createRunnerPool,
  type RunnerPool,
  type RunnerPoolOptions,
} from '../engine/runners/runner-pool.ts'
import type { ComponentHealth } from '../engine/usage/health.ts'
import { KeyUsage } from '../http/application/key-usage.ts'
import type { ApplicationOrigin } from '../http/application/mount.ts'
import type { EnvironmentApp } from '../http/management/routes.ts'
import { RejectionLog } from '../http/rejection-log.ts'
import { loggedAudit } from '../product/audit/audit-log.ts'
import type { AuditSink } from '../product/audit/audit-outbox.ts'
import { StorageKeys } from '../product/buckets/storage-callers.ts'
import { StoredBuckets } from '../product/buckets/stored-buckets.ts'
import { LiveConfiguration } from '../product/configuration/live-configuration.ts'
import type { AcceptedLoss } from '../product/environments/documents-watermark.ts'
import { ConsoleObjects } from '../product/files/console-objects.ts'
import { type Files, openFilesOf } from '../product/files/files.ts'
import { openJwtProviders } from '../product/functional-tokens/providers.ts'
import { FunctionalTokens } from '../product/functional-tokens/tokens.ts'
import type { Logs } from '../product/logs/logs.ts'
import { openProduct, type Product, schedulerHost, stopProduct } from '../product/product.ts'
import { ServingHealth } from '../product/serving/serving-health.ts'
import { runnerCommand } from '../runner/command.ts'
import { runnerSpawner } from '../runner/processes.ts'
import type { MemorySettings } from '../settings/memory.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import { Cursors } from '../storage/cursors.ts'
import { openProductRoot, type ProductRoot } from '../storage/root.ts'
import { ConcurrencyLimit } from '../system/concurrency.ts'
import { keepMemory } from '../system/memory/memory-keeper.ts'
import { divideMemory, type MemoryPlan } from '../system/memory/memory-plan.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { Traces } from '../telemetry/traces/spans.ts'
import { prepareManifests } from '../wire/files/manifest.ts'
import type { ApplicationProcesses } from './application-processes/application-processes.ts'
import { openBackups } from './backups/backups.ts'
import { openBlobs } from './blobs.ts'
import { openRootDocuments } from './documents.ts'
import { openLogs } from './environment-logs.ts'
import type { ShutdownStack } from './shutdown-stack.ts'

export interface OpenEnvironment {
  readonly store: DocumentStore
  readonly addRecords: (records: readonly string[]) => void
  /** The plan of this process, and of each application process. */
  readonly memory: MemoryPlan
  readonly product: Product
  readonly engine: Engine
  readonly releases: ServingHealth
  readonly files: Files
  readonly objects: ConsoleObjects
  readonly logs: Logs
  readonly tokens: FunctionalTokens
  /** Adds the Project and the Environment to each record, and writes to the Environment's log. */
  readonly log: Logger
  readonly keyUsage: KeyUsage
  readonly containment: () => ContainmentLevel | null
  readonly rejections: RejectionLog
  /** Null without an identity database, which backups are part of. */
  readonly backups: Backups | null
}

/** The settings that concern the Environment. */
export type EnvironmentSettings = Pick<ServerSettings, 'product' | 'logs' | 'sandbox'> & {
  readonly memory: Pick<MemorySettings, 'targetMib'>
}

export interface EnvironmentOptions {
  readonly configuration: EnvironmentSettings
  readonly rootPath: string
  readonly auditSink: AuditSink
  /** Null or absent in a server of `svc dev`, which has none and makes no backups. */
  readonly identityDatabase?: Database | null
  /** The peppers of that database. */
  readonly peppers?: BackedUpPeppers
  /** Null or absent accepts no loss of documents. */
  readonly acceptedLoss?: AcceptedLoss | null
  /** Wraps the store of the bytes of files; absent to use it as it is. */
  readonly wrapBlobs?: (blobs: BlobStore) => BlobStore
  /** `ProductOptions.cronsChannel`. */
  readonly cronsChannel?: string
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  /** Null or absent where the main process answers the application origin alone. */
  readonly processes?: ApplicationProcesses | null
  /** Null or absent if traces are off. */
  readonly traces?: Traces | null
  /** Receives each resource once it is open, so that a failed start closes it too. */
  readonly closing: ShutdownStack
}

/**
 * Opens all parts. Throws SERVER_PRODUCT_ROOT_*, SERVER_DOCUMENT_DATABASE_UNAVAILABLE,
 * SERVER_DOCUMENTS_OLDER, SERVER_DATABASE_NEWER, SERVER_SANDBOX_UNAVAILABLE, PRODUCT_CORRUPT.
 */
export async function openEnvironment(options: EnvironmentOptions): Promise<OpenEnvironment> {
  const { configuration, rootPath, system, metrics, closing } = options
  const { processes = null } = options
  const isShared = processes !== null
  const root = await openProductRoot(rootPath, system, { isShared })
  closing.add(() => root.close())
  const { projectId, environmentId } = root.descriptor
  options.traces?.addAttributes({
    'svc.project.id': projectId,
    'svc.environment.id': environmentId,
  })
  // Before the log: this checks that the settings name the store of the root, which has the
  // segments of the log as well.
  const blobs = await blobsOf(options, environmentId)
  const opened = await openLogs({
    root,
    settings: configuration.logs,
    s3: configuration.product?.storage?.s3 ?? null,
    system,
    log: options.log,
    metrics,
  })
  closing.add(() => opened.close())
  const { log, logs, redaction, addRecords } = opened
  const memory = planOf(options)
  const starting = startPool(configuration, { system, log, metrics, memory }, closing)
  const live = new LiveConfiguration(root)
  redaction.add(live.secrets())
  live.onChange(() => redaction.add(live.secrets()))
  const shared = { system, log, metrics, memory }
  const tokens = await openTokens(configuration, root, { system, log })
  const database = configuration.product?.database ?? null
  const { acceptedLoss = null } = options
  const documents = await openRootDocuments({ root, database, acceptedLoss, isShared, ...shared })
  closing.add(() => documents.close())
  const { store } = documents
  // Runs while the first runner starts, which takes longer.
  prepareManifests()
  const pool = await starting
  const outbound = outboundOf(configuration)
  const cursors = new Cursors(root.keyring)
  const documentSystem = database === null ? ('sqlite' as const) : ('postgresql' as const)
  const traced = { traces: options.traces, documentSystem }
  const ports = {
    store,
    pool,
    cursors,
    outbound,
    configuration: live,
    ...shared,
    ...traced,
    onDurable: processes === null ? undefined : processes.committed.bind(processes),
    issueGuest: ((request) => tokens.issueGuest(request)) satisfies IssueGuest,
  }
  const { engine, files } = openFilesOf({ ...shared, ...storageOf(root), blobs }, (storage) =>
    createEngine({ ...ports, storage }),
  )
  const backups = await backupsOf(options, { root, log, memory, engine, store, files })
  // Closed after the engine: the last increment has the last commits.
  closing.add(() => backups?.stop())
  closing.add(() => engine.close())
  closing.add(() => files.close())
  const auditSink = loggedAudit(options.auditSink, log)
  const rules = { configuration: live, auditSink, cronsChannel: options.cronsChannel, memory }
  if (processes !== null) {
    root.control.onCommit(() => processes.controlChanged(root.control.changes))
  }
  const served = processes === null ? engine : warmEverywhere(engine, processes)
  const onServed = processes === null ? undefined : processes.servedChanged.bind(processes)
  const product = openProduct({ system, log, root, engine: served, onServed, ...rules })
  closing.add(() => stopProduct(product))
  const trimReleases = () => product.serving.trim()
  closing.add(keepMemory(memory, { pool, store, trimReleases, system, metrics }))
  const objects = new ConsoleObjects({ root, files, heldAudits: product.heldAudits })
  await product.heldAudits.resolve(
    async (id) => (await engine.administration.isCommitted(id)) || objects.isCommitted(id),
  )
  engine.scheduler.start(schedulerHost(product))
  engine.migrations.start(schedulerHost(product))
  closing.add(() => backups?.close())
  const { keyUsage, rejections } = openLoggers(log, closing)
  const releases = new ServingHealth({ ...product, log })
  const parts = { memory, product, engine, store, releases, files, objects, logs, addRecords }
  const containment = () => pool.statistics().containment
  return { ...parts, tokens, log, keyUsage, containment, rejections, backups }
}

function outboundOf({ product }: EnvironmentSettings) {
  const networks = product?.actionNetworks ?? []
  return { allowedNetworks: networks.map(({ range }) => range) }
}

function openLoggers(log: Logger, closing: ShutdownStack) {
  const keyUsage = new KeyUsage(log)
  closing.add(() => keyUsage.stop())
  const rejections = new RejectionLog(log)
  closing.add(() => rejections.stop())
  return { keyUsage, rejections }
}

async function blobsOf(
  { rootPath, configuration: { product }, wrapBlobs }: EnvironmentOptions,
  environmentId: string,
): Promise<BlobStore> {
  const blobs = await openBlobs({ rootPath, environmentId, storage: product?.storage ?? null })
  return wrapBlobs?.(blobs) ?? blobs
}

function storageOf(root: ProductRoot) {
  const buckets = new StoredBuckets(root.control, root.descriptor)
  return { keyring: root.keyring, buckets, storageKeys: new StorageKeys(root) }
}

function backupsOf(
  { configuration, identityDatabase = null, peppers, system, metrics }: EnvironmentOptions,
  {
    root,
    log,
    memory,
    engine,
    store,
    files,
  }: Pick<OpenEnvironment, 'log' | 'memory' | 'engine' | 'store' | 'files'> & {
    readonly root: ProductRoot
  },
): Promise<Backups> | null {
  if (identityDatabase === null) return null
  const { backups = null, storage } = configuration.product ?? {}
  return openBackups({
    server: {
      system,
      store,
      commits: engine.commits,
      holdSnapshot: () => engine.commits.holdSnapshot(),
      holdFiles: () => files.collection.pause(),
      root,
      blobs: files.blobs,
      identity: identityDatabase,
      peppers: (backups?.includesPepper && peppers) || null,
    },
    log,
    metrics,
    settings: backups,
    memory,
    freeFloorBytes: storage?.freeFloorBytes ?? 0,
  })
}

/** Each application process has an engine as well, and so the same part of the memory. */
function planOf({ configuration, processes }: EnvironmentOptions): MemoryPlan {
  const { targetMib } = configuration.memory
  const cpus = navigator.hardwareConcurrency
  return divideMemory({ targetMib, cpus, processes: 1 + (processes?.count ?? 0) })
}

/** A Release is warm once every application process is able to call it at once. */
function warmEverywhere(engine: Engine, processes: ApplicationProcesses): Engine {
  return {
    ...engine,
    isWarm: (release) => engine.isWarm(release) && processes.isWarm(release.releaseId),
    warm: async (release) => {
      await engine.warm(release)
      await processes.warm(release.releaseId)
    },
  }
}

async function openTokens(
  { product }: EnvironmentSettings,
  { keyring, control, descriptor: { environmentId } }: ProductRoot,
  shared: { readonly system: System; readonly log: Logger },
): Promise<FunctionalTokens> {
  const given = product?.jwtProviders ?? []
  const providers = await openJwtProviders({ providers: given, control, ...shared })
  return new FunctionalTokens({ providers, keyring, environmentId, system: shared.system })
}

/** Starts the first runner while the caller opens the stores. */
function startPool(
  { sandbox }: EnvironmentSettings,
  shared: Pick<RunnerPoolOptions, 'system' | 'log' | 'metrics' | 'memory'>,
  closing: ShutdownStack,
): Promise<RunnerPool> {
  const pool = createRunnerPool({ ...shared, spawn: runnerSpawner(runnerCommand()) })
  closing.add(() => pool.close())
  const starting = pool.start({ sandbox }).then(() => pool)
  // A caller that fails to open a store never awaits this promise: its rejection is handled here.
  starting.catch(() => undefined)
  return starting
}

/** Bound of the objects that operators send at the same time: 1 GiB on the disk, of 64 MiB each. */
const OBJECT_UPLOADS_MAX = 16

/** The parts of the server that the management routes of an Environment use as well. */
export interface ServerParts {
  readonly metrics: Metrics
  readonly doctor: EnvironmentApp['doctor']
  readonly certificateHealth: () => readonly ComponentHealth[]
}

/** Returns the parts of an open Environment that its management routes use. */
export function environmentApp(
  { product, engine, releases, logs, files, objects, backups }: OpenEnvironment,
  application: Pick<ApplicationOrigin, 'health'>,
  { metrics, doctor, certificateHealth }: ServerParts,
): EnvironmentApp {
  return {
    product,
    logs,
    files,
    objects,
    metrics,
    doctor,
    objectUploads: new ConcurrencyLimit(OBJECT_UPLOADS_MAX, 'PRODUCT_UNAVAILABLE'),
    backups,
    backupDownloads: { open: 0 },
    health: async () => [
      ...(await engine.health()),
      await releases.check(),
      await files.health(),
      application.health(),
      await logs.health(),
      ...(backups?.health() ?? []),
      ...certificateHealth(),
    ],
  }
}
