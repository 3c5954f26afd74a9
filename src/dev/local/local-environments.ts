/**
 * Opens one Environment with its application origin on a loopback address. It has the parts of a
 * server, but no accounts: the author of this machine takes the place of operators.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, reasonText } from '../../errors/fault.ts'
import type { ApplicationOrigin } from '../../http/application/mount.ts'
import type { RejectionLog } from '../../http/rejection-log.ts'
import { requestCounts } from '../../http/request-counts.ts'
import { Transfers } from '../../http/transfers/transfers.ts'
import { isForDevelopment } from '../../product/workspaces/synchronize.ts'
import { openApplication } from '../../server/application-origins.ts'
import {
  type EnvironmentSettings,
  type OpenEnvironment,
  openEnvironment,
} from '../../server/environments.ts'
import type { ShutdownStack } from '../../server/shutdown-stack.ts'
import { warnOneWay } from '../../server/upgrade/preparation.ts'
import { surveyRoot } from '../../server/upgrade/survey.ts'
import { readJwtProviders } from '../../settings/jwt-providers.ts'
import { readLogSettings } from '../../settings/logs.ts'
import { readMemory } from '../../settings/memory.ts'
import { readRealtime } from '../../settings/realtime.ts'
import { readStorage } from '../../settings/storage.ts'
import { type BlobOrigin, OnDemandBlobs } from '../../storage/blobs/on-demand-blobs.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import type { ProductRoot } from '../../storage/root.ts'
import { parseNetwork } from '../../system/address-ranges.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { type ObservedCall, observeCalls } from './observed-calls.ts'

export interface LocalOptions {
  /** Absolute. */
  readonly rootPath: string
  /** Absolute path of the Workspace, whose auth.json lists JWT providers. */
  readonly workspaceDirectory: string
  readonly system: System
  readonly log: Logger
  readonly onCall: (call: ObservedCall) => void
  /** Addresses of this machine that are open to the local network; empty if it is closed. */
  readonly networkAddresses: readonly string[]
  /** The Channel whose Crons run. */
  readonly channel: string
  /** Has the bytes of files that the root lacks; null for a root that is not a copy. */
  readonly files: BlobOrigin | null
  /** Receives each resource once it is open, so that a failed start closes it too. */
  readonly closing: ShutdownStack
}

export interface LocalEnvironment extends OpenEnvironment {
  readonly application: ApplicationOrigin
  readonly metrics: Metrics
  readonly transfers: Transfers
}

/** Matches origins of pages on this machine. Other origins are sites that the author visits. */
const LOCAL_ORIGIN = /^https?:\/\/(?:(?:[a-z0-9-]+\.)*localhost|127\.0\.0\.1|\[::1\])(?::[0-9]+)?$/
/** Loopback networks, which Actions may call: substitutes for other services run there. */
const LOCAL_NETWORKS = ['127.0.0.0/8', '::1/128']
const AUTH_FILE = 'auth.json'

/**
 * Opens the Environment. Throws SERVER_PRODUCT_ROOT_*, SERVER_CONFIGURATION_INVALID for auth.json,
 * CLIENT_ROOT_INVALID for an Environment that is not for development, and PRODUCT_CORRUPT.
 */
export async function openLocalEnvironment(options: LocalOptions): Promise<LocalEnvironment> {
  const { rootPath, system, log, closing } = options
  const metrics = new Metrics(system)
  const memory = readMemory({}, 1)
  const surveys = surveyRoot(rootPath)
  // No backup is made before: the documents are those of the author.
  if (surveys.some(({ oneWay }) => oneWay)) warnOneWay(log, surveys, null)
  const environment = await openEnvironment({
    configuration: { ...settingsOf(options), memory },
    rootPath,
    system,
    log,
    metrics,
    closing,
    // A local root has no audit trail, since only its author can change it.
    auditSink: async () => undefined,
    // Accepts a loss with a warning: the documents are those of the author alone, and a machine
    // without power may have lost the last commits.
    acceptedLoss: 'any',
    cronsChannel: options.channel,
    wrapBlobs: (blobs) =>
      options.files === null ? blobs : new OnDemandBlobs(blobs, options.files),
  })
  requireDevelopment(environment.product.root)
  const engine = observeCalls(environment.engine, system, options.onCall)
  const report = reportRejection(options)
  const rejections: Pick<RejectionLog, 'add'> = {
    add(request, fault) {
      environment.rejections.add(request, fault)
      report(request, fault)
    },
  }
  const transfers = new Transfers(system)
  const application = openApplication(
    { ...environment, engine, rejections },
    {
      system,
      metrics,
      realtime: readRealtime({}, memory),
      transfers,
      s3Host: null,
      sharedLimits: null,
      allowedOrigins: { has: (origin) => isOfMachine(origin, options.networkAddresses) },
      counts: requestCounts(metrics, 'application'),
    },
  )
  return { ...environment, application, metrics, transfers }
}

/** Returns whether a page is of this machine, whose `addresses` in the local network are given. */
function isOfMachine(origin: string, addresses: readonly string[]): boolean {
  if (LOCAL_ORIGIN.test(origin)) return true
  return (
    addresses.length > 0 && URL.canParse(origin) && addresses.includes(new URL(origin).hostname)
  )
}

function settingsOf({
  rootPath,
  workspaceDirectory,
}: LocalOptions): Omit<EnvironmentSettings, 'memory'> {
  const auth = join(workspaceDirectory, AUTH_FILE)
  return {
    logs: readLogSettings({}),
    sandbox: 'preferred',
    product: {
      root: rootPath,
      applicationListen: null,
      applicationTlsTerminated: false,
      applicationEndsTls: false,
      applicationProcesses: 1,
      s3Host: null,
      database: null,
      allowedOrigins: [],
      actionNetworks: LOCAL_NETWORKS.map((text) => ({ text, range: parseNetwork(text)! })),
      jwtProviders: existsSync(auth) ? readJwtProviders(auth) : [],
      storage: readStorage({}),
      backups: null,
    },
  }
}

/** Reports requests that were rejected before the engine, which reports its rejections as calls. */
function reportRejection({ onCall }: LocalOptions) {
  return (
    request: { readonly invocationId?: unknown; readonly function?: string | null },
    fault: Fault,
  ): void => {
    if (request.invocationId) return
    const { code, message } = fault
    onCall({
      kind: 'request',
      function: request.function ?? '',
      outcome: code,
      durationMillis: 0,
      detail: reasonText(fault) ?? message,
    })
  }
}

/** Throws CLIENT_ROOT_INVALID for an Environment that is not for development. */
export function requireDevelopment({ control }: Pick<ProductRoot, 'control'>): void {
  const { configuration, lifecycle } = control.read(findEnvironment)!
  const { purpose } = configuration
  if (lifecycle === 'archived') throw unusable('is archived')
  if (!isForDevelopment(purpose)) {
    throw unusable(`has the purpose ${purpose}, and every save would replace what it serves`)
  }
}

function unusable(reason: string): Fault {
  return new Fault('CLIENT_ROOT_INVALID', { detail: `Its Environment ${reason}.` })
}

/** Returns whether the Environment serves targets `workspace:NAME`. */
export function allowsTargets({ root }: Pick<OpenEnvironment['product'], 'root'>): boolean {
  return root.control.read(findEnvironment)!.configuration.workspaceTargets === 'allowed'
}
