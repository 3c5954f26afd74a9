/**
 * An application process: it answers the application origin on an address that it shares with the
 * others, executes Queries over its own reads of the documents, and passes Mutations, Actions and
 * transfers of files to the main process, which started it.
 */
import { join } from 'node:path'
import type { FollowedDocuments } from '../../documents/followed-documents.ts'
import { followPostgresDocuments } from '../../documents/postgres/followed-store.ts'
import { followSqliteDocuments } from '../../documents/sqlite/followed-store.ts'
import { createReadingEngine, type ReadingEngine } from '../../engine/create-reading-engine.ts'
import { createRunnerPool } from '../../engine/runners/runner-pool.ts'
import { Fault } from '../../errors/fault.ts'
import { FunctionDocuments } from '../../http/application/functions/documents.ts'
import { PlainForms } from '../../http/application/functions/forms.ts'
import type { Gateway } from '../../http/application/gateway.ts'
import { KeyUsage } from '../../http/application/key-usage.ts'
import { mountApplication } from '../../http/application/mount.ts'
import { ParsedQueries } from '../../http/application/parsed-queries.ts'
import { Realtime } from '../../http/application/realtime/realtime.ts'
import { APPLICATION_CODES } from '../../http/errors.ts'
import { applicationLimits } from '../../http/rate-limits.ts'
import { RejectionLog } from '../../http/rejection-log.ts'
import { requestCounts } from '../../http/request-counts.ts'
import { SharedTransferState } from '../../http/transfers/shared-transfers.ts'
import { Transfers } from '../../http/transfers/transfers.ts'
import { LiveConfiguration } from '../../product/configuration/live-configuration.ts'
import { functionStorage } from '../../product/files/function-storage.ts'
import type { FilePorts } from '../../product/files/ports.ts'
import { FollowedProduct } from '../../product/followed-product.ts'
import { openJwtProviders } from '../../product/functional-tokens/providers.ts'
import { FunctionalTokens } from '../../product/functional-tokens/tokens.ts'
import { SecretRedaction } from '../../product/logs/secret-redaction.ts'
import { resolveTarget, unservedReason } from '../../product/serving/target-resolution.ts'
import { runnerCommand } from '../../runner/command.ts'
import { runnerSpawner } from '../../runner/processes.ts'
import { dieWithParent } from '../../runner/sandbox/privileges.ts'
import type { CertificatePair } from '../../settings/tls.ts'
import { Cursors } from '../../storage/cursors.ts'
import { DOCUMENTS_FILE, followProductRoot, type ProductRoot } from '../../storage/root.ts'
import { keepMemory } from '../../system/memory/memory-keeper.ts'
import { type Counts, SharedCounts } from '../../system/memory/shared-counts.ts'
import { mapSharedMemory } from '../../system/memory/shared-memory.ts'
import { realSystem, type System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { FunctionCounts } from '../../telemetry/metrics/function-figures.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { watchProcess } from '../../telemetry/metrics/process.ts'
import type { Traces } from '../../telemetry/traces/spans.ts'
import { Secret } from '../../value/secret.ts'
import { BUILD_VERSION } from '../../value/version.ts'
import { prepareManifests } from '../../wire/files/manifest.ts'
import { followBlobs } from '../blobs.ts'
import type { ServerIo } from '../io.ts'
import { type OpenListener, openListener } from '../listeners.ts'
import { CertificateWatch } from '../tls/certificate-watch.ts'
import { Channel } from './channel.ts'
import { currentApp } from './current-app.ts'
import { Follower } from './follower.ts'
import { ForwardedRequests } from './forwarded-requests.ts'
import type {
  ApplicationSide,
  MainSide,
  ProcessStatus,
  SentCertificate,
  StartMessage,
} from './messages.ts'
import { processLog } from './process-log.ts'
import { remoteCalls } from './remote-calls.ts'

/** Time limit for requests in flight after `drain`. */
const DRAIN_MILLIS = 15_000
const READ_CONNECTIONS = 4
const MIB = 1024 * 1024

type ToMain = Channel<ApplicationSide, MainSide>

/** Runs until the main process stops it or ends. */
export async function runApplicationProcess(io: ServerIo): Promise<void> {
  // It would otherwise stay, and keep the address, if it hung when the main process ended.
  dieWithParent()
  // The main process decides when to stop: a terminal sends its signals to the whole group.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const started = Promise.withResolvers<StartMessage>()
  const drained = Promise.withResolvers<void>()
  const follower = new Follower()
  let opened: OpenApplication | null = null
  const channel: ToMain = new Channel<ApplicationSide, MainSide>({
    send: (envelopes) => void process.send!(envelopes),
    onMessage: (message) => {
      if (message.kind === 'start') started.resolve(message.start)
      else if (message.kind === 'drain') drained.resolve()
      else follower.note(message)
    },
    onRequest: async (request) => {
      switch (request.kind) {
        case 'warm':
          return follower.warm(request.releaseId)
        case 'status':
          return opened?.status() ?? null
        case 'functions':
          return opened?.functionsOf(request.releaseId) ?? []
      }
    },
    onReceived: () => follower.received(),
    lost: () => new Fault('RESULT_UNCERTAIN', { detail: 'the main process has ended' }),
  })
  process.on('message', (envelopes: readonly unknown[]) => channel.receive(envelopes))
  process.on('disconnect', () => process.exit(1))
  const application = await open(await started.promise, channel, follower, io)
  opened = application
  channel.post({ kind: 'ready' })
  await drained.promise
  await application.drain()
  // Its callback is called once the messages before it are sent too.
  await new Promise((resolve) => process.send!([], undefined, undefined, resolve))
  process.exit(0)
}

interface OpenApplication {
  status(): ProcessStatus
  functionsOf(releaseId: string): FunctionCounts[]
  drain(): Promise<void>
}

/** The log, the metrics and the traces of this process. */
interface Shared {
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly traces: Traces | null
}

interface OpenParts {
  readonly engine: ReadingEngine
  readonly product: FollowedProduct
  readonly tokens: FunctionalTokens
  readonly stopKeeping: () => void
}

async function open(
  start: StartMessage,
  channel: ToMain,
  follower: Follower,
  io: ServerIo,
): Promise<OpenApplication> {
  const root = followProductRoot(start.rootPath)
  const configuration = new LiveConfiguration(root)
  const shared = await openShared(start, { root, configuration, channel, io })
  const store = openDocuments(start, shared.metrics)
  const parts = await openParts(start, shared, { root, configuration, store, channel })
  const { engine, product } = parts
  follower.begin({ start, engine, store, product })
  const { processes, number, countsSalt: salt } = start
  const memory = mapSharedMemory(start.countsPath)
  const counts = new SharedCounts(memory, { processes, number: number - 1, salt })
  const gateway = gatewayOf(start, shared, parts, counts)
  const { metrics } = shared
  const origin = mountApplication(gateway, new Realtime(gateway, start.realtime, metrics, counts))
  const { bodies, downloads } = gateway.transfers
  const { environmentId } = root.descriptor
  const forwarded = new ForwardedRequests({
    ...start,
    downloads,
    blobs: followBlobs({ ...start, environmentId }),
    reject: (binding, fault) => origin.reject(binding, fault),
  })
  await product.serving.whenIdle()
  await follower.current()
  const pair = start.certificate === null ? undefined : receivedPair(start.certificate)
  const listener = openListener({
    ...shared,
    surface: 'application',
    listen: start.listen,
    sharesPort: true,
    tlsTerminated: start.tlsTerminated,
    certificate: pair,
    app: currentApp(origin, follower, forwarded, bodies),
    codes: APPLICATION_CODES,
  })
  const watch = watchCertificate(start, shared, listener, pair)
  metrics.addSource(() => ({ applicationRequestsInFlight: listener.inFlight() }))
  const status = () => ({ realtime: origin.health(), metrics: metrics.own() })
  const report = () => channel.post({ kind: 'status', status: status() })
  report()
  return {
    status,
    functionsOf: (releaseId) => metrics.ownFunctions(releaseId),
    async drain() {
      // Spreading the reconnections of many clients takes seconds, in which calls are still served.
      await origin.drain()
      watch?.stop()
      listener.stopListening()
      const cut = setTimeout(() => listener.cut(), DRAIN_MILLIS)
      await listener.drain()
      clearTimeout(cut)
      parts.stopKeeping()
      gateway.keyUsage.stop()
      await product.close()
      await engine.close()
      await shared.traces?.close()
      report()
      await channel.sent()
    },
  }
}

/** The files are not read: a process that replaces another one starts while they are damaged. */
function receivedPair({ key, ...certificate }: SentCertificate): CertificatePair {
  return { ...certificate, key: new Secret(key) }
}

/** The main process logs what comes of a new certificate, so this one does not. */
function watchCertificate(
  { certificate }: StartMessage,
  { system }: Shared,
  listener: OpenListener,
  pair: CertificatePair | undefined,
): CertificateWatch | null {
  if (certificate === null || pair === undefined) return null
  const { paths } = certificate
  const onCertificate = (next: CertificatePair) => listener.useCertificate(next)
  const watch = new CertificateWatch({ paths, pair, system, log: null, onCertificate })
  watch.start()
  return watch
}

interface LogSources {
  readonly root: ProductRoot
  readonly configuration: LiveConfiguration
  readonly channel: ToMain
  readonly io: ServerIo
}

async function openShared(
  start: StartMessage,
  { root, configuration, channel, io }: LogSources,
): Promise<Shared> {
  const system = realSystem()
  const metrics = new Metrics(system)
  watchProcess(metrics, system)
  const redaction = new SecretRedaction()
  redaction.add(configuration.secrets())
  configuration.onChange(() => redaction.add(configuration.secrets()))
  const log = processLog({ root, redaction, system, metrics, channel, io })
  process.on('uncaughtException', (error) => log.error('server.uncaught', { error }))
  process.on('unhandledRejection', (error) => log.error('server.uncaught', { error }))
  const traces = await openTraces(start, { system, log, metrics })
  const { projectId, environmentId } = root.descriptor
  traces?.addAttributes({ 'svc.project.id': projectId, 'svc.environment.id': environmentId })
  return { system, log, metrics, traces }
}

interface PartSources {
  readonly root: ProductRoot
  readonly configuration: LiveConfiguration
  readonly store: FollowedDocuments
  readonly channel: ToMain
}

async function openParts(
  start: StartMessage,
  shared: Shared,
  { root, configuration, store, channel }: PartSources,
): Promise<OpenParts> {
  const { system, log } = shared
  const { plan: memory } = start
  const pool = createRunnerPool({ ...shared, memory, spawn: runnerSpawner(runnerCommand()) })
  const starting = pool.start({ sandbox: start.sandbox })
  // Runs while the first runner starts, which takes longer.
  prepareManifests()
  const { jwtProviders } = start
  const providers = await openJwtProviders({
    providers: jwtProviders,
    control: root.control,
    writeKeySet: (publisher, keySet) => channel.post({ kind: 'keySet', publisher, keySet }),
    system,
    log,
  })
  const { keyring, descriptor } = root
  const { environmentId } = descriptor
  const tokens = new FunctionalTokens({ providers, keyring, environmentId, system })
  await starting
  const engine = createReadingEngine({
    ...shared,
    memory,
    store,
    pool,
    configuration,
    cursors: new Cursors(keyring),
    issueGuest: (request) => tokens.issueGuest(request),
    // Queries sign downloads, which needs the keyring alone.
    storage: functionStorage(() => ({ keyring }) as FilePorts),
    remote: remoteCalls(channel),
    prepareRemotely: ({ releaseId }) => channel.ask({ kind: 'prepare', releaseId }),
  })
  const product = new FollowedProduct({
    system,
    log,
    root,
    engine,
    configuration,
    memory,
    writeUses: (uses) => channel.post({ kind: 'keyUses', uses }),
  })
  const trimReleases = () => product.serving.trim()
  const stopKeeping = keepMemory(memory, { pool, store, trimReleases, ...shared })
  return { engine, product, tokens, stopKeeping }
}

function gatewayOf(
  { allowedOrigins, s3Host, memory, ...start }: StartMessage,
  { system, log, metrics, traces }: Shared,
  { engine, product, tokens }: OpenParts,
  counts: Counts,
): Gateway {
  return {
    system,
    log,
    engine,
    tokens,
    traces,
    keyUsage: new KeyUsage(log),
    rejections: new RejectionLog(log),
    transfers: new Transfers(system, {
      unfinishedBodyBytesMax: memory.requestMib * MIB,
      unsentAnswerBytesMax: memory.responseMib * MIB,
      counts,
      state: new SharedTransferState(mapSharedMemory(start.transfersPath), start.number),
    }),
    counts: requestCounts(metrics, 'application'),
    allowedOrigins: new Set(allowedOrigins),
    s3Host,
    parsedQueries: new ParsedQueries(start.plan),
    plainForms: new PlainForms(start.plan),
    functionDocuments: new FunctionDocuments(start.plan),
    limits: applicationLimits(system, mapSharedMemory(start.limitsPath)),
    // The main process answers the requests that need these two.
    get files(): never {
      throw notHere()
    },
    get workspaces(): never {
      throw notHere()
    },
    hooks: null,
    authenticateKey: (key) => product.keys.authenticate(key),
    explainKey: (key) => product.keys.explain(key),
    resolveTarget: (target, caller, source) => resolveTarget(product, caller, target, source),
    revision: () => product.root.control.changes + product.serving.changes,
    unservedReason: () => unservedReason(product),
    canServe: () => product.serving.canServe(),
  }
}

function notHere(): Error {
  return new Error('the main process answers this request')
}

function openDocuments(start: StartMessage, metrics: Metrics): FollowedDocuments {
  const { databaseUrl, latestSequence, schema, plan: memory } = start
  if (databaseUrl === null) {
    const path = join(start.rootPath, DOCUMENTS_FILE)
    return followSqliteDocuments(path, { latestSequence, schema, memory })
  }
  return followPostgresDocuments({
    url: new Secret(databaseUrl),
    connectionsMax: READ_CONNECTIONS,
    latestSequence,
    schema,
    memory,
    onConnectionLost: () => metrics.counters.documentConnectionsLost.add(),
  })
}

async function openTraces(
  { traces }: StartMessage,
  shared: { readonly system: System; readonly log: Logger; readonly metrics: Metrics },
): Promise<Traces | null> {
  if (traces === null) return null
  const { openTraces: openExport } = await import('../../telemetry/traces/open-telemetry.ts')
  const headers = traces.headers.map(({ name, value }) => ({ name, value: new Secret(value) }))
  return openExport({ ...traces, headers, version: BUILD_VERSION, ...shared })
}
