/**
 * `svc-server serve`: opens the listeners, then identity and the Product Environment, and closes
 * them in reverse order. Modules that the listeners do not need are loaded after the listeners are
 * open: until then the connections of clients are refused during a restart. A second signal
 * terminates the process at once.
 */
import { allowOrigin } from '../http/application/browser-origins.ts'
import { APPLICATION_CODES, MANAGEMENT_CODES } from '../http/errors.ts'
import { type RequestCounts, requestCounts } from '../http/request-counts.ts'
import { parseListener } from '../settings/addresses.ts'
import { parseSettings, type ServerSettings } from '../settings/settings.ts'
import { realSystem, type System } from '../system/system.ts'
import { createLog, type Logger } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { watchProcess } from '../telemetry/metrics/process.ts'
import { BUILD_VERSION } from '../value/version.ts'
import { Admission } from './admission.ts'
import { acceptedLoss } from './command-line/arguments.ts'
import type { Composition } from './composition.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { type ListenOptions, type OpenListener, openListener, type Surface } from './listeners.ts'
import { ShutdownStack } from './shutdown-stack.ts'
import { ServerCertificate } from './tls/server-certificate.ts'

/** Time limit for requests and scheduled work in progress after the first signal to stop. */
const DRAIN_MILLIS = 15_000
/** Time limit for sending the last responses of a closing listener. */
const LAST_ANSWERS_MILLIS = 1_000

interface ServerContext {
  readonly configuration: ServerSettings
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  readonly counts: Readonly<Record<Surface, RequestCounts>>
  /** Null if no listener ends TLS. */
  readonly certificate: ServerCertificate | null
}

interface AdmittingListener extends OpenListener {
  readonly admission: Admission
  /** True if the listener ends TLS itself. */
  readonly endsTls: boolean
}

export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const configuration = parseSettings(environment, 'serve')
  const system = realSystem()
  const format = io.errIsTerminal ? 'human' : 'json'
  const metrics = new Metrics(system)
  const onDropped = () => metrics.counters.logRecordsDropped.add()
  const log = createLog({ system, sink: io.err, format, onDropped })
  warnOfSettings(configuration, log)
  const closing = new ShutdownStack(log)
  installCrashHandlers(log)
  outliveHangups(log)
  const unwatch = watchProcess(metrics, system)
  const counts = {
    management: requestCounts(metrics, 'management'),
    application: requestCounts(metrics, 'application'),
  }
  const certificate = ServerCertificate.of(configuration, { system, log, metrics })
  const context = { configuration, system, log, metrics, counts, certificate }
  const listeners: AdmittingListener[] = []
  try {
    const stop = stopSignal()
    // Added first, so closed last: until then new requests are rejected with a retry time.
    closing.add(() => close(listeners))
    listen(context, listeners)
    watchCertificate(context, listeners)
    await certificate?.openOrders(closing)
    const { openServer } = await import('./composition.ts')
    const apps = await openServer({
      ...context,
      processEnvironment: environment,
      acceptedLoss: acceptedLoss(args),
      certificateHealth: () => certificate?.health() ?? [],
      certificatePair: () => certificate?.pair ?? null,
      closing,
    })
    closing.add(() => drain(listeners, DRAIN_MILLIS, () => apps.drainWork()))
    // Closed before the requests drain: spreading the reconnections of many clients takes seconds,
    // in which calls are still served.
    closing.add(() => apps.drainApplication())
    closing.add(() => apps.endStreams())
    // The root is locked, so no other server orders for it.
    certificate?.startOrders(closing)
    await Promise.race([awaitCertificate(context, listeners, apps), stop])
    if (certificate?.pair !== null) {
      await admitAll(listeners, apps)
      log.info('server.ready', { message: `svc-server ${BUILD_VERSION} is ready.` })
    }
    const signal = await stop
    log.info('server.stopping', { message: `Stopping after ${signal}.` })
  } finally {
    await closing.close()
    unwatch()
  }
  log.info('server.stopped', { message: 'Stopped.' })
  return 0
}

function warnOfSettings({ deprecatedNames, exposedNames }: ServerSettings, log: Logger): void {
  for (const name of deprecatedNames) {
    log.warn('server.deprecated_name', { message: `${name} is deprecated.`, name })
  }
  for (const name of exposedNames) {
    const message = `Every user of this machine can read the file of ${name}: chmod o-r it.`
    log.warn('server.exposed_secret', { message, name })
  }
}

/**
 * Adds each listener that it opens to `listeners`, so that the caller closes it if a later one
 * fails. A listener that ends TLS is opened once there is a certificate.
 */
function listen(context: ServerContext, listeners: AdmittingListener[]): void {
  const { management, product } = context.configuration
  openOwn(context, listeners, 'management', management, false)
  const { applicationListen } = product ?? {}
  if (applicationListen) {
    const address = {
      listen: applicationListen,
      tlsTerminated: product!.applicationTlsTerminated,
      endsTls: product!.applicationEndsTls,
    }
    openOwn(context, listeners, 'application', address, product!.applicationProcesses > 1)
  }
}

/** Gives the listeners that end TLS each new certificate. */
function watchCertificate(
  { certificate }: ServerContext,
  listeners: readonly AdmittingListener[],
): void {
  certificate?.watch((pair) => {
    for (const each of listeners) each.useCertificate(pair)
  })
}

/** Serves what does not end TLS until the first certificate is there, then listens on the rest. */
async function awaitCertificate(
  context: ServerContext,
  listeners: AdmittingListener[],
  apps: Composition,
): Promise<void> {
  const { certificate, log } = context
  if (certificate === null || certificate.pair !== null) return
  for (const { surface, admission } of listeners) admission.open(apps[surface]!)
  const message = 'Addresses that end TLS are opened once the authority has issued a certificate.'
  log.warn('server.certificate_awaited', { message })
  await certificate.issued()
  await certificate.openListeners(() => listen(context, listeners))
  if (certificate.isStopped) return
  watchCertificate(context, listeners)
}

/** Starts the application processes, and admits the requests of all listeners. */
async function admitAll(listeners: readonly AdmittingListener[], apps: Composition): Promise<void> {
  const application = listeners.find(({ surface }) => surface === 'application')
  if (application !== undefined) await apps.startProcesses(parseListener(application.address)!)
  for (const { surface, admission } of listeners) admission.open(apps[surface]!)
  // From now on new connections arrive at the application processes.
  if (apps.hasProcesses) application?.stopListening()
}

const ORIGINS = {
  management: {
    codes: MANAGEMENT_CODES,
    probes: { live: '/health/live', ready: '/health/ready' },
  },
  application: {
    codes: APPLICATION_CODES,
    probes: { live: '/healthz', ready: '/readyz' },
  },
} as const

/** Opens an address that no other server has, with the certificate where no proxy ends TLS. */
function openOwn(
  context: ServerContext,
  listeners: AdmittingListener[],
  surface: Surface,
  { endsTls, ...address }: Omit<ServerSettings['management'], 'publicUrl'>,
  hasProcesses: boolean,
): void {
  if (listeners.some((each) => each.surface === surface)) return
  const certificate = endsTls ? context.certificate!.pair : undefined
  const sharesPort = hasProcesses || endsTls
  // A shared port would not tell that another server listens on it.
  if (sharesPort) openAdmitting(context, surface, address).cut()
  if (certificate === null) return
  const listener = openAdmitting(context, surface, { ...address, sharesPort, certificate })
  listeners.push(listener)
  context.metrics.addSource(() => ({ [`${surface}RequestsInFlight`]: listener.inFlight() }))
  const message = `${surface} on ${listener.address}${endsTls ? ' with TLS' : ''}`
  const { address: bound } = listener
  context.log.info('server.listening', { message, surface, address: bound, tls: endsTls })
}

function openAdmitting(
  { configuration, system, log, counts }: ServerContext,
  surface: Surface,
  bound: Pick<ListenOptions, 'listen' | 'tlsTerminated' | 'sharesPort' | 'certificate'>,
): AdmittingListener {
  const { codes, probes } = ORIGINS[surface]
  const allowedOrigins = new Set(configuration.product?.allowedOrigins)
  const admission = new Admission({
    codes,
    probes,
    system,
    onAnswer: (response, origin) => {
      counts[surface].answered(response.status)
      if (surface === 'application') allowOrigin(allowedOrigins, response, origin)
    },
  })
  const listener = openListener({ surface, app: admission, codes, system, log, ...bound })
  return { ...listener, admission, endsTls: bound.certificate !== undefined }
}

/** Logs uncaught errors instead of exiting: one faulty request must not end all others. */
function installCrashHandlers(log: Logger): void {
  process.on('uncaughtException', (error) => log.error('server.uncaught', { error }))
  process.on('unhandledRejection', (error) => log.error('server.uncaught', { error }))
}

/** Resolves with the first signal. A later one terminates the process, as by default. */
function stopSignal(): Promise<NodeJS.Signals> {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM']
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const each of signals) process.off(each, stop)
      resolve(signal)
    }
    for (const each of signals) process.on(each, stop)
  })
}

/** Logs that SIGHUP has no effect here, although it makes other servers reload their settings. */
function outliveHangups(log: Logger): void {
  const message = 'SIGHUP changes nothing: settings are read at the start, and SIGTERM stops.'
  process.on('SIGHUP', () => log.info('server.hangup', { message }))
}

/**
 * Rejects new requests, and waits for those in flight and for `work`. After `millis` it cuts all
 * connections and stops waiting.
 */
async function drain(
  listeners: readonly AdmittingListener[],
  millis: number,
  work: () => Promise<void> = async () => undefined,
): Promise<void> {
  for (const { admission } of listeners) admission.drain()
  const drained = listeners.map((listener) => listener.drain())
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(() => {
    for (const listener of listeners) listener.cut()
    late.resolve()
  }, millis)
  await Promise.all([...drained, Promise.race([work(), late.promise])])
  clearTimeout(timer)
}

async function close(listeners: readonly AdmittingListener[]): Promise<void> {
  await drain(listeners, LAST_ANSWERS_MILLIS)
  for (const listener of listeners) listener.cut()
}
