/** The parts of a server that serves: identity, then the Product Environment, and both origins. */
import { QueryEnvelopes } from '../http/application/call-envelopes.ts'
import type { Gateway } from '../http/application/gateway.ts'
import { type ApplicationOrigin, mountApplication } from '../http/application/mount.ts'
import { Realtime } from '../http/application/realtime/realtime.ts'
import { isObjectRequest } from '../http/management/buckets/objects.ts'
import { mountManagement } from '../http/management/mount.ts'
import { managementRoutes } from '../http/management/routes.ts'
import { openApiText } from '../http/openapi/published.ts'
import { applicationLimits, managementLimits } from '../http/rate-limits.ts'
import type { RequestCounts } from '../http/request-counts.ts'
import { Transfers } from '../http/transfers/transfers.ts'
import { type Identity, openIdentity } from '../identity/identity.ts'
import type { ConsoleObjects } from '../product/buckets/console-objects.ts'
import { readLinkable } from '../product/environments/environments.ts'
import type { Files } from '../product/files/files.ts'
import type { Logs } from '../product/logs/logs.ts'
import { resolveTarget, unservedReason } from '../product/serving/targets.ts'
import { findSubjectProvenance } from '../product/workspaces/provenance.ts'
import type { ServerSettings } from '../settings/settings.ts'
import { ConcurrencyLimit } from '../system/concurrency.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import { type OpenEnvironment, openEnvironment } from './environments.ts'
import type { ListenerApp, Surface } from './listeners.ts'
import type { ShutdownStack } from './shutdown-stack.ts'

export interface CompositionOptions {
  readonly configuration: ServerSettings
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly counts: Readonly<Record<Surface, RequestCounts>>
  /** Gains what is open, also where the rest cannot be opened. */
  readonly closing: ShutdownStack
}

interface Running extends CompositionOptions {
  readonly identity: Identity
  readonly environment: OpenEnvironment | null
  readonly transfers: Transfers
}

export interface Composition {
  readonly management: ListenerApp
  /** Null without a Product. */
  readonly application: ApplicationOrigin | null
  /** Ends responses that would last as long as their clients listen. */
  endStreams(): void
}

/** Throws SERVER_* Faults and PRODUCT_CORRUPT. */
export async function openServer(options: CompositionOptions): Promise<Composition> {
  const { configuration, system, log, closing } = options
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
  const root = configuration.product?.root
  const opening = { ...options, identity }
  const environment =
    root === undefined ? null : await openEnvironment({ ...opening, rootPath: root })
  const running = { ...opening, environment, transfers: transfersOf(options) }
  return {
    management: managementApp(running),
    application: environment === null ? null : applicationApp(running, environment),
    endStreams: () => environment?.logs.endFollowers(),
  }
}

const MIB = 1024 * 1024
/** Objects that operators send at once. */
const OBJECT_UPLOADS_MAX = 16

function transfersOf({ configuration, system }: CompositionOptions): Transfers {
  const { requestMib, responseMib } = configuration.memory
  return new Transfers(system, {
    unfinishedBodyBytesMax: requestMib * MIB,
    unsentAnswerBytesMax: responseMib * MIB,
  })
}

function managementApp(running: Running): ListenerApp {
  const { configuration, system, log, metrics, identity, environment, transfers } = running
  const product = environment?.product ?? null
  const managementOrigin = configuration.management.publicUrl
  const hono = mountManagement({
    system,
    log,
    routes: managementRoutes,
    limits: managementLimits(system),
    transfers,
    counts: running.counts.management,
    app: {
      identity,
      managementOrigin,
      metrics,
      openApiDocument: openApiText,
      // Routes of the Product run only where mount found its Environment configured.
      product: product!,
      logs: environment?.logs as Logs,
      files: environment?.files as Files,
      objects: environment?.objects as ConsoleObjects,
      objectUploads: new ConcurrencyLimit(OBJECT_UPLOADS_MAX, 'PRODUCT_UNAVAILABLE'),
      health: async () => [
        ...(await environment!.engine.health()),
        await environment!.files.health(),
        await environment!.logs.health(),
      ],
      environment: product?.root.descriptor ?? null,
      sessions: identity,
      findProvenance: (actor, subject) =>
        product === null ? null : findSubjectProvenance(product, actor, subject),
      linkableEnvironments: async () =>
        product === null ? [] : [{ ...readLinkable(product), managementOrigin }],
    },
  })
  return { fetch: hono.fetch, answersHead: isObjectRequest }
}

function applicationApp(
  { configuration, system, metrics, transfers, counts }: Running,
  { product, engine, files, tokens, log, keyUsage, rejections }: OpenEnvironment,
): ApplicationOrigin {
  const gateway: Gateway = {
    system,
    log,
    engine,
    envelopes: new QueryEnvelopes(),
    tokens,
    limits: applicationLimits(system),
    transfers,
    files,
    counts: counts.application,
    keyUsage,
    rejections,
    allowedOrigins: new Set(configuration.product?.allowedOrigins),
    authenticateKey: (key) => product.keys.authenticate(key),
    explainKey: (key) => product.keys.explain(key),
    resolveTarget: (target, caller, source) => resolveTarget(product, caller, target, source),
    revision: () => product.root.control.changes + product.serving.changes,
    unservedReason: () => unservedReason(product),
  }
  return mountApplication(gateway, new Realtime(gateway, configuration.realtime, metrics))
}
