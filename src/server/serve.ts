/**
 * `svc-server serve`: opens identity, then the Product Environment, then the listeners, and closes
 * them in the opposite order. A second signal ends the process at once.
 */
import { readFileSync } from 'node:fs'
import { QueryEnvelopes } from '../http/application/call-envelopes.ts'
import { mountApplication } from '../http/application/mount.ts'
import { APPLICATION_CODES, MANAGEMENT_CODES } from '../http/errors.ts'
import { mountManagement } from '../http/management/mount.ts'
import { managementRoutes } from '../http/management/routes.ts'
import { openApiText } from '../http/openapi/published.ts'
import { applicationLimits, managementLimits } from '../http/rate-limits.ts'
import { requestCounts } from '../http/request-counts.ts'
import { Transfers } from '../http/transfers/transfers.ts'
import { type Identity, openIdentity } from '../identity/identity.ts'
import { readLinkable } from '../product/environments/environments.ts'
import { resolveTarget } from '../product/serving/targets.ts'
import { parseSettings, type ServerSettings } from '../settings/settings.ts'
import { realSystem, type System } from '../system/system.ts'
import { createLog, type Logger } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { watchProcess } from '../telemetry/metrics/process.ts'
import { VERSION } from '../value/version.ts'
import { type OpenEnvironment, openEnvironment } from './environments.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { type OpenListener, openListener } from './listeners.ts'
import { ShutdownStack } from './shutdown-stack.ts'

/** How long requests in flight may take once the server was told to stop. */
const DRAIN_MILLIS = 15_000

interface Running {
  readonly configuration: ServerSettings
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly identity: Identity
  readonly environment: OpenEnvironment | null
  readonly transfers: Transfers
}

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'serve')
  const system = realSystem()
  const format = io.errIsTerminal ? 'human' : 'json'
  const metrics = new Metrics(system)
  const onDropped = () => metrics.counters.logRecordsDropped.add()
  const log = createLog({ system, sink: io.err, format, onDropped })
  for (const name of configuration.deprecatedNames) {
    log.warn('server.deprecated_name', { message: `${name} is deprecated.`, name })
  }
  for (const name of configuration.exposedNames) {
    const message = `Every user of this machine can read the file of ${name}: chmod o-r it.`
    log.warn('server.exposed_secret', { message, name })
  }
  const closing = new ShutdownStack(log)
  installCrashHandlers(log)
  const unwatch = watchProcess(metrics, system)
  try {
    const stop = stopSignal()
    const identity = openIdentity({
      databaseUrl: configuration.identityDatabase.url,
      pepper: configuration.identityPepper,
      stateDirectory: configuration.stateDirectory,
      oidc: configuration.oidc,
      managedSource: configuration.managedSource,
      system,
      log,
    })
    closing.add(() => identity.close())
    await identity.startup()
    const world = { configuration, identity, system, log, metrics }
    const opened = await openProductEnvironment({ ...world, closing })
    const listeners: OpenListener[] = []
    closing.add(() => drain(listeners))
    listen({ ...world, environment: opened, transfers: transfersOf(world) }, listeners)
    log.info('server.ready', { message: `svc-server ${VERSION} is ready.` })
    const signal = await stop
    log.info('server.stopping', { message: `Stopping after ${signal}.` })
  } finally {
    await closing.close()
    unwatch()
  }
  log.info('server.stopped', { message: 'Stopped.' })
  return 0
}

async function openProductEnvironment(
  options: Omit<Running, 'environment' | 'transfers'> & { readonly closing: ShutdownStack },
): Promise<OpenEnvironment | null> {
  const { configuration } = options
  if (configuration.product === null) return null
  return openEnvironment({ ...options, rootPath: configuration.product.root })
}

const MIB = 1024 * 1024

function transfersOf({ configuration, system }: Pick<Running, 'configuration' | 'system'>) {
  const { requestMib, responseMib } = configuration.memory
  return new Transfers(system, {
    unfinishedBodyBytesMax: requestMib * MIB,
    unsentAnswerBytesMax: responseMib * MIB,
  })
}

/** `listeners` gains each that is open, so that those before one that fails are closed too. */
function listen(running: Running, listeners: OpenListener[]): void {
  const { configuration, system, log, metrics } = running
  const { product, management } = configuration
  listeners.push(
    openListener({
      surface: 'management',
      listen: management.listen,
      app: managementApp(running),
      codes: MANAGEMENT_CODES,
      system,
      log,
      tlsTerminated: management.tlsTerminated,
    }),
  )
  if (running.environment !== null && product?.applicationListen) {
    listeners.push(
      openListener({
        surface: 'application',
        listen: product.applicationListen,
        app: applicationApp(running, running.environment),
        codes: APPLICATION_CODES,
        system,
        log,
        tlsTerminated: true,
      }),
    )
  }
  for (const { surface, address, inFlight } of listeners) {
    metrics.addSource(() => ({ [`${surface}RequestsInFlight`]: inFlight() }))
    log.info('server.listening', { message: `${surface} on ${address}`, surface, address })
  }
}

function managementApp(running: Running) {
  const { configuration, system, log, metrics, identity, environment, transfers } = running
  const product = environment?.product ?? null
  const managementOrigin = configuration.management.publicUrl
  return mountManagement({
    system,
    log,
    routes: managementRoutes,
    limits: managementLimits(system),
    transfers,
    counts: requestCounts(metrics, 'management'),
    app: {
      identity,
      managementOrigin,
      metrics,
      openApiDocument: openApiText,
      // Routes of the Product run only where mount found its Environment configured.
      product: product!,
      health: async () => [
        ...(await environment!.engine.health()),
        await environment!.files.health(),
      ],
      environment: product?.root.descriptor ?? null,
      sessions: identity,
      linkableEnvironments: async () =>
        product === null ? [] : [{ ...readLinkable(product), managementOrigin }],
    },
  })
}

function applicationApp(
  { configuration, system, metrics, transfers }: Running,
  { product, engine, files, tokens, log, keyUsage, rejections }: OpenEnvironment,
) {
  return mountApplication({
    system,
    log,
    engine,
    envelopes: new QueryEnvelopes(),
    tokens,
    limits: applicationLimits(system),
    transfers,
    files,
    counts: requestCounts(metrics, 'application'),
    keyUsage,
    rejections,
    allowedOrigins: new Set(configuration.product?.allowedOrigins),
    authenticateKey: (key) => product.keys.authenticate(key),
    explainKey: (key) => product.keys.explain(key),
    resolveTarget: (target, caller, source) => resolveTarget(product, caller, target, source),
    serving: () => product.serving.isStarted,
  })
}

/** A mistake in one request must not end all the others; each request has its own last resort. */
function installCrashHandlers(log: Logger): void {
  process.on('uncaughtException', (error) => log.error('server.mistake', { error }))
  process.on('unhandledRejection', (error) => log.error('server.mistake', { error }))
}

/** Resolves with the first signal; the next one has the effect that signals have by default. */
function stopSignal(): Promise<NodeJS.Signals> {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM']
  if (!ignoresHangups()) signals.push('SIGHUP')
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const each of signals) process.off(each, stop)
      resolve(signal)
    }
    for (const each of signals) process.on(each, stop)
  })
}

/**
 * Whether the end of its terminal is nothing to the process, as under `nohup`: to listen for it
 * would undo that. Elsewhere than on Linux nothing tells, so the system decides there.
 */
function ignoresHangups(): boolean {
  try {
    const status = readFileSync('/proc/self/status', 'utf8')
    const signals = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status)?.[1]
    return signals === undefined || (BigInt(`0x${signals}`) & 1n) === 1n
  } catch {
    return true
  }
}

async function drain(listeners: readonly OpenListener[]): Promise<void> {
  const drained = Promise.all(listeners.map((listener) => listener.stop()))
  const late = new Promise<void>((resolve) => setTimeout(resolve, DRAIN_MILLIS).unref())
  await Promise.race([drained, late])
  for (const listener of listeners) listener.cut()
}
