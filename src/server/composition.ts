/** Composes the parts of `serve`: identity, then the Product Environment, then both origins. */

import type { ComponentHealth } from '../engine/usage/health.ts'
import { assert } from '../errors/assert.ts'
import type { ApplicationOrigin } from '../http/application/mount.ts'
import { APPLICATION_CODES } from '../http/errors.ts'
import { isObjectRequest } from '../http/management/buckets/objects.ts'
import { mountManagement } from '../http/management/mount.ts'
import { type EnvironmentApp, managementRoutes } from '../http/management/routes.ts'
import { openApiText } from '../http/openapi/published.ts'
import { managementLimits } from '../http/rate-limits.ts'
import { RejectionLog } from '../http/rejection-log.ts'
import type { RequestCounts } from '../http/request-counts.ts'
import { Transfers } from '../http/transfers/transfers.ts'
import { deliverProductAudit } from '../identity/audit.ts'
import { type Identity, openIdentity } from '../identity/identity.ts'
import { IdentityRetention } from '../identity/retention.ts'
import { readLinkable } from '../product/environments/environments.ts'
import { findSubjectProvenance } from '../product/workspaces/provenance.ts'
import type { Listener } from '../settings/addresses.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { CertificatePair } from '../settings/tls.ts'
import { writePublishedKeySet } from '../storage/control/published-keys.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { Traces } from '../telemetry/traces/spans.ts'
import { BUILD_VERSION } from '../value/version.ts'
import { openApplication } from './application-origins.ts'
import { ApplicationProcesses } from './application-processes/application-processes.ts'
import type { SentCertificate } from './application-processes/messages.ts'
import { peppersOf } from './backups/peppers.ts'
import { revealAddress } from './blobs.ts'
import { boundedRuns } from './doctor/runs.ts'
import { environmentApp, type OpenEnvironment, openEnvironment } from './environments.ts'
import type { ProcessEnvironment } from './io.ts'
import { type ListenerApp, openListener, type Surface } from './listeners.ts'
import type { ShutdownStack } from './shutdown-stack.ts'
import { prepareMigrations } from './upgrade/preparation.ts'

export interface CompositionOptions {
  readonly configuration: ServerSettings
  /** The variables that the configuration was read from. */
  readonly processEnvironment: ProcessEnvironment
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly counts: Readonly<Record<Surface, RequestCounts>>
  /** The sequence of `--accept-loss`; null accepts no loss of documents. */
  readonly acceptedLoss: number | null
  /** Returns the health of the certificate that the server orders; nothing without one. */
  readonly certificateHealth: () => readonly ComponentHealth[]
  /** Returns the certificate that is served; null if no listener ends TLS, and before it is. */
  readonly certificatePair: () => CertificatePair | null
  /** Receives each resource once it is open, so that a failed start closes it too. */
  readonly closing: ShutdownStack
}

interface Running extends CompositionOptions {
  readonly traces: Traces | null
  readonly identity: Identity
  readonly environment: OpenEnvironment | null
  readonly transfers: Transfers
}

export interface Composition {
  readonly management: ListenerApp
  /** Null without a Product. */
  readonly application: ApplicationOrigin | null
  /** True if application processes accept the connections of the application origin. */
  readonly hasProcesses: boolean
  /** Starts the application processes, if there are any, at the address of the main process. */
  startProcesses(address: Listener): Promise<void>
  /**
   * Lets Realtime clients reconnect elsewhere, and application processes end. Resolves once all
   * connections are closed.
   */
  drainApplication(): Promise<void>
  /** Stops starting scheduled work; resolves once the work in progress has ended. */
  drainWork(): Promise<void>
  /** Ends the streaming responses, which last until their clients disconnect. */
  endStreams(): void
}

/** Opens all parts. Throws SERVER_* Faults and PRODUCT_CORRUPT. */
export async function openServer(options: CompositionOptions): Promise<Composition> {
  const { configuration, system, log, closing } = options
  const traces = await openTraces(options)
  closing.add(() => traces?.close())
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    oidc: configuration.oidc,
    workloads: configuration.workloads,
    managedSource: configuration.managedSource,
    system,
    log,
  })
  closing.add(() => identity.close())
  await prepareMigrations({ configuration, identity: identity.database, system, log })
  await identity.startup()
  const retention = new IdentityRetention({
    database: identity.database,
    system,
    log,
    ...configuration.retention,
  })
  closing.add(() => retention.close())
  const root = configuration.product?.root
  const auditSink = deliverProductAudit.bind(null, identity)
  const processes = processesOf(options, traces)
  closing.add(() => processes?.close())
  const environment =
    root === undefined
      ? null
      : await openEnvironment({
          ...options,
          traces,
          processes,
          auditSink,
          identityDatabase: identity.database,
          peppers: peppersOf(configuration),
          rootPath: root,
        })
  const running = {
    ...options,
    traces,
    identity,
    environment,
    transfers: transfersOf(options, processes),
  }
  const application = environment === null ? null : applicationOf(running, environment, processes)
  const realtime = processes ?? application
  const management = managementApp(running, realtime)
  return {
    management,
    application,
    hasProcesses: processes !== null,
    startProcesses: async (address) => {
      if (environment === null || application === null || processes === null) return
      await startProcesses(processes, { application, environment, address }, options)
    },
    drainApplication: async () => {
      await Promise.all([application?.drain(), processes?.drain()])
    },
    drainWork: async () => environment?.engine.scheduler.drain(),
    endStreams: () => environment?.logs.endFollowers(),
  }
}

/** Null where the main process answers the application origin alone. */
function processesOf(
  { configuration, system, log, metrics }: CompositionOptions,
  traces: Traces | null,
): ApplicationProcesses | null {
  const { applicationProcesses: count = 1, applicationListen } = configuration.product ?? {}
  if (count === 1 || applicationListen === null) return null
  return new ApplicationProcesses({ count, system, log, metrics, traces })
}

interface Started {
  readonly application: ApplicationOrigin
  readonly environment: OpenEnvironment
  readonly address: Listener
}

/** Starts the application processes, and answers what they pass on. */
async function startProcesses(
  processes: ApplicationProcesses,
  { application, environment, address }: Started,
  { configuration, system, log, closing, certificatePair }: CompositionOptions,
): Promise<void> {
  const { product, engine, store, memory: plan, addRecords } = environment
  const origin = openListener({
    surface: 'application',
    listen: { socketPath: processes.originPath },
    tlsTerminated: true,
    app: application,
    codes: APPLICATION_CODES,
    system,
    log,
  })
  closing.add(() => origin.cut())
  const { realtime, memory, sandbox, traces } = configuration
  const { count } = processes
  const share = (total: number) => Math.ceil(total / count)
  const { root, database, jwtProviders, allowedOrigins, s3Host, storage } = configuration.product!
  await processes.start({
    engine,
    store,
    load: (releaseId) => product.releases.peek(releaseId) ?? product.releases.load(releaseId),
    writeUses: (uses) => product.keys.writeUses(uses),
    writeKeySet: (publisher, keySet) => {
      try {
        product.root.control.transaction((tx) => writePublishedKeySet(tx, publisher, keySet))
      } catch (error) {
        log.warn('keys.not_stored', { error })
      }
    },
    addRecords,
    certificate: () => servedCertificate(configuration, certificatePair()),
    start: {
      rootPath: root,
      listen: address,
      tlsTerminated: configuration.product!.applicationTlsTerminated,
      databaseUrl: database?.url.reveal() ?? null,
      jwtProviders,
      allowedOrigins,
      s3Host,
      s3: storage?.s3 ? revealAddress(storage.s3) : null,
      sandbox,
      memory: {
        requestMib: share(memory.requestMib),
        responseMib: share(memory.responseMib),
      },
      plan,
      realtime: { ...realtime, memoryBytesMax: share(realtime.memoryBytesMax) },
      traces: traces && {
        ...traces,
        headers: traces.headers.map(({ name, value }) => ({ name, value: value.reveal() })),
      },
    },
  })
}

function servedCertificate(
  { product, tls }: CompositionOptions['configuration'],
  pair: CertificatePair | null,
): SentCertificate | null {
  if (!product!.applicationEndsTls) return null
  // Without it a process would listen without TLS.
  assert(pair !== null, 'the certificate is there')
  return { ...pair, key: pair.key.reveal(), paths: tls!.paths }
}

/** Loads OpenTelemetry only if traces are exported: its modules slow the start. */
async function openTraces(options: CompositionOptions): Promise<Traces | null> {
  const settings = options.configuration.traces
  if (settings === null) return null
  const { openTraces: open } = await import('../telemetry/traces/open-telemetry.ts')
  const { system, log, metrics } = options
  return open({ ...settings, version: BUILD_VERSION, system, log, metrics })
}

const MIB = 1024 * 1024

function transfersOf(
  { configuration, system }: CompositionOptions,
  processes: ApplicationProcesses | null,
): Transfers {
  const { requestMib, responseMib } = configuration.memory
  return new Transfers(system, {
    unfinishedBodyBytesMax: requestMib * MIB,
    unsentAnswerBytesMax: responseMib * MIB,
    state: processes?.transfers,
  })
}

function managementApp(
  running: Running,
  application: Pick<ApplicationOrigin, 'health'> | null,
): ListenerApp {
  const { configuration, system, log, metrics, identity, environment, transfers } = running
  const product = environment?.product ?? null
  // The mount rejects requests to Product routes if no Environment is configured.
  const ofEnvironment =
    environment === null || application === null
      ? ({ metrics } as EnvironmentApp)
      : environmentApp(environment, application, {
          metrics,
          doctor: doctorOf(running, environment),
          certificateHealth: running.certificateHealth,
        })
  const managementOrigin = configuration.management.publicUrl
  const rejections = new RejectionLog(log)
  running.closing.add(() => rejections.stop())
  const origin = mountManagement({
    system,
    log,
    rejections,
    routes: managementRoutes,
    limits: managementLimits(system),
    transfers,
    counts: running.counts.management,
    traces: running.traces,
    app: {
      ...ofEnvironment,
      identity,
      managementOrigin,
      openApiDocument: openApiText,
      environment: product?.root.descriptor ?? null,
      sessions: identity,
      findProvenance: (actor, subject) =>
        product === null ? null : findSubjectProvenance(product, actor, subject),
      linkableEnvironments: async () =>
        product === null ? [] : [{ ...readLinkable(product), managementOrigin }],
    },
  })
  return { fetch: origin.fetch, reject: origin.reject, answersHead: isObjectRequest }
}

/** Loads the doctor with the first run: its modules slow the start. */
function doctorOf(
  { configuration, processEnvironment, system, metrics }: Running,
  { containment }: OpenEnvironment,
): EnvironmentApp['doctor'] {
  return boundedRuns(async (headers) => {
    const { runInside } = await import('./doctor/inside.ts')
    return runInside({
      settings: configuration,
      environment: processEnvironment,
      system,
      containment: containment(),
      droppedRecords: metrics.counters.logRecordsDropped.value,
      headers,
    })
  })
}

function applicationOf(
  running: Running,
  environment: OpenEnvironment,
  processes: ApplicationProcesses | null,
): ApplicationOrigin {
  const { configuration, counts } = running
  return openApplication(environment, {
    ...running,
    counts: counts.application,
    realtime: configuration.realtime,
    allowedOrigins: new Set(configuration.product?.allowedOrigins),
    s3Host: configuration.product?.s3Host ?? null,
    sharedLimits: processes?.limits ?? null,
  })
}
