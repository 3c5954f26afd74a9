/** Composes the parts of `serve`: identity, then the Product Environment, then both origins. */
import type { ApplicationOrigin } from '../http/application/mount.ts'
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
import type { ServerSettings } from '../settings/settings.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { Traces } from '../telemetry/traces/spans.ts'
import { BUILD_VERSION } from '../value/version.ts'
import { openApplication } from './application-origins.ts'
import { environmentApp, type OpenEnvironment, openEnvironment } from './environments.ts'
import type { ListenerApp, Surface } from './listeners.ts'
import type { ShutdownStack } from './shutdown-stack.ts'

export interface CompositionOptions {
  readonly configuration: ServerSettings
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly counts: Readonly<Record<Surface, RequestCounts>>
  /** The sequence of `--accept-loss`; null accepts no loss of documents. */
  readonly acceptedLoss: number | null
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
  const environment =
    root === undefined
      ? null
      : await openEnvironment({ ...options, traces, auditSink, rootPath: root })
  const running = { ...options, traces, identity, environment, transfers: transfersOf(options) }
  const application = environment === null ? null : applicationOf(running, environment)
  return {
    management: managementApp(running, application),
    application,
    drainWork: async () => environment?.engine.scheduler.drain(),
    endStreams: () => environment?.logs.endFollowers(),
  }
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

function transfersOf({ configuration, system }: CompositionOptions): Transfers {
  const { requestMib, responseMib } = configuration.memory
  return new Transfers(system, {
    unfinishedBodyBytesMax: requestMib * MIB,
    unsentAnswerBytesMax: responseMib * MIB,
  })
}

function managementApp(running: Running, application: ApplicationOrigin | null): ListenerApp {
  const { configuration, system, log, metrics, identity, environment, transfers } = running
  const product = environment?.product ?? null
  // The mount rejects requests to Product routes if no Environment is configured.
  const ofEnvironment =
    environment === null || application === null
      ? ({ metrics } as EnvironmentApp)
      : environmentApp(environment, application, metrics)
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

function applicationOf(running: Running, environment: OpenEnvironment): ApplicationOrigin {
  const { configuration, counts } = running
  return openApplication(environment, {
    ...running,
    counts: counts.application,
    realtime: configuration.realtime,
    allowedOrigins: new Set(configuration.product?.allowedOrigins),
    s3Host: configuration.product?.s3Host ?? null,
  })
}
