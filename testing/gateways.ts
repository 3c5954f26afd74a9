/**
 * Opens the application origin in this process: a real Product, real keys and real documents. Only
 * the Functions run without a sandbox.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocuments } from '../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../src/documents/store.ts'
import { createEngine } from '../src/engine/create-engine.ts'
import type { Engine } from '../src/engine/engine.ts'
import type { IssueGuest } from '../src/engine/invocations/guest-identities.ts'
import type { Timers } from '../src/engine/scheduling/timers.ts'
import { FunctionDocuments } from '../src/http/application/functions/documents.ts'
import { PlainForms } from '../src/http/application/functions/forms.ts'
import type { Gateway } from '../src/http/application/gateway.ts'
import { KeyUsage } from '../src/http/application/key-usage.ts'
import { type ApplicationOrigin, mountApplication } from '../src/http/application/mount.ts'
import { ParsedQueries } from '../src/http/application/parsed-queries.ts'
import { Realtime, type RealtimeLimits } from '../src/http/application/realtime/realtime.ts'
import type { ApplicationLimits } from '../src/http/rate-limits.ts'
import { RejectionLog } from '../src/http/rejection-log.ts'
import { requestCounts } from '../src/http/request-counts.ts'
import { Transfers } from '../src/http/transfers/transfers.ts'
import { createClient } from '../src/product/application-clients/application-clients.ts'
import { createCredential } from '../src/product/application-clients/application-keys.ts'
import { StorageKeys } from '../src/product/buckets/storage-callers.ts'
import { StoredBuckets } from '../src/product/buckets/stored-buckets.ts'
import { promote } from '../src/product/channels/promote.ts'
import { type Files, openFilesOf } from '../src/product/files/files.ts'
import { openJwtProviders } from '../src/product/functional-tokens/providers.ts'
import { FunctionalTokens } from '../src/product/functional-tokens/tokens.ts'
import { hookPorts } from '../src/product/http-mounts/hook-ports.ts'
import { schedulerHost } from '../src/product/product.ts'
import { resolveTarget, unservedReason } from '../src/product/serving/target-resolution.ts'
import { FileBlobs } from '../src/storage/blobs/file-blobs.ts'
import type { ApplicationKind } from '../src/storage/control/application-clients.ts'
import { Cursors } from '../src/storage/cursors.ts'
import { realSystem, type System } from '../src/system/system.ts'
import { createLog, type Logger } from '../src/telemetry/log.ts'
import { Metrics } from '../src/telemetry/metrics/metrics.ts'
import { APPLICATION_SCOPES, type ApplicationScope } from '../src/value/application-scopes.ts'
import type { HttpRouteManifest } from '../src/value/http/routes.ts'
import type { ReleaseId } from '../src/value/ids.ts'
import type { JwtProvider } from '../src/value/jwt-providers.ts'
import type {
  CronManifest,
  FunctionManifest,
  MigrationManifest,
  TableManifest,
} from '../src/value/manifest.ts'
import { inProcessPool, type TestHandler } from './engine/in-process-pool.ts'
import { checkedApplication } from './openapi/checked-origins.ts'
import { openTestProduct, publishRelease, REQUEST_ID, type TestProduct } from './products.ts'

export interface TestGateway {
  readonly application: ApplicationOrigin
  readonly realtime: Realtime
  readonly engine: Engine
  readonly files: Files
  readonly filesDirectory: string
  readonly store: DocumentStore
  readonly metrics: Metrics
  readonly keyUsage: KeyUsage
  readonly rejections: RejectionLog
  /** A confidential Application Key with every scope. */
  readonly key: string
  /** Creates an Application Client with one credential and returns its key. */
  issueKey(
    kind: ApplicationKind,
    rateLimit?: number | null,
    scopes?: readonly ApplicationScope[],
  ): string
  /** The Release that the Channel `production` is bound to. */
  readonly releaseId: ReleaseId
  /** The Product. Its engine describes the code as tests set it, and is idle with `engine`. */
  readonly harness: TestProduct
  close(): Promise<void>
}

export interface GatewayInput {
  readonly functions: readonly FunctionManifest[]
  readonly tables: readonly TableManifest[]
  readonly crons?: readonly CronManifest[]
  readonly migrations?: readonly MigrationManifest[]
  readonly http?: readonly HttpRouteManifest[]
  readonly handlers: Readonly<Record<string, TestHandler>>
  readonly providers?: readonly JwtProvider[]
  /** Existing documents; default: new ones in SQLite. The gateway closes the store. */
  readonly store?: DocumentStore
  /** Default: no limits. */
  readonly limits?: ApplicationLimits
  /** Default: the budgets of a server with the default settings. */
  readonly transfers?: Transfers
  /** Default: the limits of a server with the default settings. */
  readonly realtime?: RealtimeLimits
  /** Default: none. */
  readonly s3Host?: string
  /** Clock of the origin and of tokens, not of the engine. Default: the real one. */
  readonly system?: System
  /** The timers of scheduled work. */
  readonly timers?: Timers
  /**
   * Default: records are created and dropped, since those of a million requests fill the memory.
   */
  readonly log?: Logger
  /** False if the test observes how responses are read, which are not read ahead then. */
  readonly readsBodies?: boolean
}

export const ORIGIN = 'https://app.example'
const REALTIME_LIMITS: RealtimeLimits = {
  connectionsMax: 20_000,
  connectionsPerCredentialMax: 10_000,
  connectionsPerPeerMax: 1_000,
  memoryBytesMax: 256 * 1024 * 1024,
}

/** Connects the Product to the engine, and starts its scheduled work and its Crons. */
function connectEngine({ engine: fake, product }: TestProduct, engine: Engine): void {
  fake.whenIdle = () => engine.whenIdle()
  fake.scheduler = engine.scheduler
  fake.migrations = engine.migrations
  engine.scheduler.start(schedulerHost(product))
  engine.migrations.start(schedulerHost(product))
  product.crons.follow()
}

/** Opens a Product whose Channel `production` serves the Release. */
async function openServedProduct(input: GatewayInput) {
  const harness = await openTestProduct()
  const { product, actor } = harness
  const { releaseId } = await publishRelease(harness, input)
  const promotion = { channel: 'production', releaseId, requestId: REQUEST_ID }
  promote(product, actor, { ...promotion, expectedReleaseId: 'empty' })
  await product.serving.whenIdle()
  return { harness, releaseId }
}

export async function openTestGateway(input: GatewayInput): Promise<TestGateway> {
  const { harness, releaseId } = await openServedProduct(input)
  const { product } = harness
  const directory = mkdtempSync(join(tmpdir(), 'svc-gateway-'))
  const store = input.store ?? (await openSqliteDocuments(join(directory, 'documents.db')))
  const pool = inProcessPool(input.handlers)
  const nothing = async () => undefined
  Object.assign(pool, { close: nothing, warm: nothing, markServed: () => undefined })
  Object.assign(pool, { retainOnly: () => undefined })
  const system = realSystem()
  const log = input.log ?? createLog({ system, sink: () => undefined, level: 'debug' })
  const clock = input.system ?? system
  const tokens = await openTokens(harness, input, log)
  const { configuration } = product
  const issueGuest: IssueGuest = (request) => tokens.issueGuest(request)
  const metrics = new Metrics(system)
  const cursors = new Cursors(harness.root.keyring)
  const blobs = await FileBlobs.open({ directory: join(directory, 'files'), freeFloorBytes: 0 })
  const ports = { store, pool, system, log, metrics, issueGuest, cursors, configuration }
  const { engine, files } = openFilesOf(
    { system, log, metrics, ...storageOf(harness), blobs },
    (storage) => createEngine({ ...ports, ...(input.timers && { timers: input.timers }), storage }),
  )
  connectEngine(harness, engine)
  harness.engine.administration = engine.administration
  harness.engine.query = (request) => engine.query(request)
  harness.engine.mutation = (request) => engine.mutation(request)
  harness.engine.action = (request) => engine.action(request)
  harness.engine.replay = (request, callers) => engine.replay(request, callers)
  const [keyUsage, rejections] = [new KeyUsage(log), new RejectionLog(log)]
  const gateway: Gateway = {
    system: clock,
    log,
    engine,
    parsedQueries: new ParsedQueries(),
    plainForms: new PlainForms(),
    functionDocuments: new FunctionDocuments(),
    tokens,
    limits: input.limits ?? null,
    transfers: input.transfers ?? new Transfers(system),
    files,
    workspaces: product,
    hooks: hookPorts(product, engine),
    counts: requestCounts(metrics, 'application'),
    keyUsage,
    rejections,
    allowedOrigins: new Set([ORIGIN]),
    s3Host: input.s3Host ?? null,
    authenticateKey: (key) => product.keys.authenticate(key),
    explainKey: (key) => product.keys.explain(key),
    resolveTarget: (target, caller, affinity) => resolveTarget(product, caller, target, affinity),
    revision: () => product.root.control.changes + product.serving.changes,
    unservedReason: () => unservedReason(product),
    canServe: () => product.serving.canServe(),
  }
  const realtime = new Realtime(gateway, input.realtime ?? REALTIME_LIMITS, metrics)
  const application = checkedApplication(mountApplication(gateway, realtime), input.readsBodies)
  return {
    application,
    realtime,
    engine,
    files,
    filesDirectory: join(directory, 'files'),
    store,
    metrics,
    keyUsage,
    rejections,
    key: issueKey(harness, 'confidential'),
    issueKey: (kind, rateLimit, scopes) => issueKey(harness, kind, rateLimit, scopes),
    releaseId,
    harness,
    async close() {
      keyUsage.stop()
      rejections.stop()
      await files.close()
      await engine.close()
      await harness.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

function storageOf({ root }: TestProduct) {
  const buckets = new StoredBuckets(root.control, root.descriptor)
  return { keyring: root.keyring, buckets, storageKeys: new StorageKeys(root) }
}

async function openTokens(
  { root: { keyring, descriptor } }: TestProduct,
  { providers = [], system = realSystem() }: GatewayInput,
  log: Logger,
): Promise<FunctionalTokens> {
  return new FunctionalTokens({
    providers: await openJwtProviders({ providers, control: null, system, log }),
    keyring,
    environmentId: descriptor.environmentId,
    system,
  })
}

function issueKey(
  { product, actor, system }: TestProduct,
  kind: ApplicationKind,
  rateLimit: number | null = null,
  scopes: readonly ApplicationScope[] = kind === 'development' ? ['workspace'] : APPLICATION_SCOPES,
): string {
  const createdAtMicros = system.nowMicros()
  const clientId = system.ids.make('app')
  const request = { name: 'test', createdAtMicros, requestId: REQUEST_ID }
  createClient(product, actor, {
    clientId,
    kind,
    maximumScopes: [...scopes],
    ...request,
  })
  const { key } = createCredential(product, actor, {
    clientId,
    credentialId: system.ids.make('crd'),
    scopes: [...scopes],
    rateLimit,
    ...request,
  })
  return key!.reveal()
}
