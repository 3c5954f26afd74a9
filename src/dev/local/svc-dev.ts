/** `svc dev`: serves a Workspace on this machine alone and follows the changes of its files. */
import { join } from 'node:path'
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { DevelopmentRequest } from '../../client/development/workspace-tools.ts'
import { isFault } from '../../errors/fault.ts'
import { ShutdownStack } from '../../server/shutdown-stack.ts'
import { ROOT_FILES, resetProductRoot } from '../../storage/root.ts'
import { realSystem } from '../../system/system.ts'
import { createLog, type LogRecord } from '../../telemetry/log.ts'
import { localAuthor } from '../../value/product-root.ts'
import type { Secret } from '../../value/secret.ts'
import type { LocalServer } from '../../wire/files/local-server.ts'
import type { Describe } from '../building/build.ts'
import { CONFIGURATION_FILE } from '../configuration/configuration-file.ts'
import { LocalConfiguration } from '../configuration/local-configuration.ts'
import type { StartTypeChecker } from '../type-check/type-check.ts'
import { withoutLinks } from '../workspace/workspace-files.ts'
import { openCopy } from './copied-roots.ts'
import { CHANNEL, DevelopmentSession } from './development-session.ts'
import { lockedBy, removeHolder, writeHolder } from './holders.ts'
import { localDevelopmentKey } from './local-development-key.ts'
import {
  allowsTargets,
  type LocalEnvironment,
  type LocalOptions,
  openLocalEnvironment,
} from './local-environments.ts'
import { LocalHooks } from './local-hooks.ts'
import { localApplicationKey, localConfidentialKey } from './local-keys.ts'
import { openLocalListener } from './local-listener.ts'
import { openLocalManagement } from './local-management.ts'
import { toEvent } from './log-events.ts'
import { networkAddresses } from './network-addresses.ts'
import {
  agentsCommand,
  consoleCommand,
  sampleCall,
  sampleCommand,
  sampleCurl,
} from './sample-calls.ts'
import { ScheduledReports } from './scheduled-reports.ts'
import { hasNoDocuments, parseSeeds, runSeeds } from './seeds.ts'

const PREFERRED_PORT = 3210
/** Time limit for closing: durable data does not depend on an orderly shutdown. */
const CLOSE_MILLIS = 700

export interface LocalDevelopmentRequest extends DevelopmentRequest {
  /** Loads a bundle before a root is open: a copy has to know the schema of the Workspace. */
  readonly describe: Describe
  /** Absent if types are not checked. */
  readonly startTypeChecker?: StartTypeChecker | undefined
}

/**
 * Serves until `signal` fires. Throws SERVER_PRODUCT_ROOT_*, SERVER_LISTEN_FAILED,
 * CLIENT_FILE_FAILED, CLIENT_ROOT_INVALID.
 */
export async function runDevelopment(request: LocalDevelopmentRequest): Promise<void> {
  const { rootPath, signal } = request
  let scheduled: ScheduledReports | null = null
  const report: Report = (event) => request.report(scheduled?.completed(event) ?? event)
  const workspaceDirectory = withoutLinks(request.workspaceDirectory)
  const system = realSystem()
  // Files of the root are readable by this user alone, regardless of the umask of the shell.
  const umask = process.umask(0o077)
  const log = createLog({
    system,
    level: 'debug',
    sink: (line) => {
      const event = toEvent(JSON.parse(line) as LogRecord, workspaceDirectory)
      if (event !== null) report(event)
    },
  })
  const closing = new ShutdownStack(log)
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  try {
    const seeds = request.seed === null ? null : parseSeeds(request.seed)
    if (request.reset) reset(rootPath)
    const copies = { ...request, workspaceDirectory, system, closing, report }
    const files = await openCopy(copies)
    if (signal.aborted) return
    const options: LocalOptions = {
      rootPath,
      workspaceDirectory,
      system,
      log,
      closing,
      channel: CHANNEL,
      files,
      networkAddresses: request.opensToNetwork ? networkAddresses() : [],
      onCall: (call) => report({ event: 'call', ...call }),
    }
    const environment = await openOwned(options)
    const listener = openLocalListener(options, { port: request.port, preferred: PREFERRED_PORT })
    const { engine, product } = environment
    const ports = { scheduler: engine.scheduler, crons: product.crons, system, report }
    scheduled = new ScheduledReports(ports)
    const author = localAuthor(environment.product.root.descriptor.environmentId)
    const { url, networkUrls } = listener
    const { applicationKey, target } = admitCommands(environment, options, url)
    // On a phone 127.0.0.1 is the phone itself, so its pages need an address of the network.
    const local = { url: networkUrls[0] ?? url, applicationKey, target }
    const hooks = new LocalHooks({ ports: product, author, target, url, report })
    const configuration = new LocalConfiguration({
      ports: environment.product,
      author,
      workspaceDirectory,
      report,
    })
    const session = new DevelopmentSession({
      ports: environment.product,
      author,
      local,
      workspaceDirectory,
      ignored: filesOfRoot(withoutLinks(rootPath)),
      included: new Set([join(workspaceDirectory, CONFIGURATION_FILE)]),
      report,
      onSaved: (release) => configuration.apply(release),
      onServed: (release) => {
        hooks.follow(release)
        void scheduled?.follow(release)
      },
      startTypeChecker: request.startTypeChecker,
    })
    closing.add(() => session.close())
    await session.update()
    if (seeds !== null) await seed(environment, session, { seeds, report })
    listener.admission.open(environment.application)
    const developmentKeyFile = allowsTargets(environment.product)
      ? localDevelopmentKey(environment.product, author, rootPath)
      : null
    const where = { url, networkUrls, applicationKey, rootPath, workspaceDirectory }
    report(ready(environment, session, { ...where, developmentKeyFile }))
    await stopped
  } finally {
    await closing.close(CLOSE_MILLIS)
    process.umask(umask)
  }
}

/** Opens the address for commands and writes it to the root, with the keys for their calls. */
function admitCommands(
  environment: LocalEnvironment,
  options: LocalOptions,
  url: string,
): Pick<LocalServer, 'applicationKey' | 'target'> {
  const { product } = environment
  const author = localAuthor(product.root.descriptor.environmentId)
  const applicationKey = localApplicationKey(product, author)
  const confidentialKey = localConfidentialKey(product, author)
  const called = { url, applicationKey, confidentialKey, target: `channel:${CHANNEL}` }
  const { url: managementUrl, accessToken } = openLocalManagement(environment, options)
  const { rootPath, workspaceDirectory } = options
  const served = { pid: process.pid, workspaceDirectory, managementUrl, accessToken }
  writeHolder(rootPath, { ...called, ...served })
  options.closing.add(() => removeHolder(options.rootPath))
  return called
}

/** Returns the paths of a root that every call changes: the root may be in the Workspace. */
function filesOfRoot(rootPath: string): ReadonlySet<string> {
  return new Set([...ROOT_FILES].map((name) => join(rootPath, name)))
}

function reset(rootPath: string): void {
  try {
    resetProductRoot(rootPath)
  } catch (error) {
    throw isFault(error, 'SERVER_PRODUCT_ROOT_LOCKED') ? lockedBy(rootPath, error) : error
  }
}

async function openOwned(
  options: Parameters<typeof openLocalEnvironment>[0],
): Promise<LocalEnvironment> {
  try {
    return await openLocalEnvironment(options)
  } catch (error) {
    const isLocked = isFault(error, 'SERVER_PRODUCT_ROOT_LOCKED')
    throw isLocked ? lockedBy(options.rootPath, error) : error
  }
}

type Report = DevelopmentRequest['report']

async function seed(
  environment: LocalEnvironment,
  { served }: DevelopmentSession,
  { seeds, report }: { readonly seeds: ReturnType<typeof parseSeeds>; readonly report: Report },
): Promise<void> {
  const { engine, product } = environment
  if (served === null) {
    report({ event: 'notice', message: 'The seed was not applied: the Workspace is not valid.' })
    return
  }
  const ports = { engine, system: product.system }
  if (!(await hasNoDocuments(ports, served))) {
    const message = 'The seed was not applied: there are documents. --reset deletes them.'
    report({ event: 'notice', message })
    return
  }
  await runSeeds(ports, served, seeds)
  report({ event: 'notice', message: `Applied the seed: ${seeds.length} Mutations.` })
}

interface ReadyInput {
  readonly url: string
  readonly networkUrls: readonly string[]
  readonly applicationKey: Secret
  readonly rootPath: string
  readonly workspaceDirectory: string
  readonly developmentKeyFile: string | null
}

function ready(
  environment: LocalEnvironment,
  { served }: DevelopmentSession,
  { url, networkUrls, applicationKey, rootPath, workspaceDirectory, ...given }: ReadyInput,
): DevelopmentEvent {
  const targets = [`channel:${CHANNEL}`]
  if (served !== null && allowsTargets(environment.product)) {
    targets.push(`workspace:${served.manifest.workspace}`)
  }
  const sample = sampleCall(served?.manifest.functions ?? [])
  const key = applicationKey.reveal()
  return {
    event: 'ready',
    url,
    networkUrls: [...networkUrls],
    applicationKey: key,
    workspace: workspaceDirectory,
    targets,
    developmentKeyFile: given.developmentKeyFile,
    try: sample === null ? null : sampleCommand(sample, rootPath),
    console: consoleCommand(rootPath),
    agents: agentsCommand(rootPath),
    curl: sample === null ? null : sampleCurl(sample, { url, target: targets[0]!, key }),
  }
}
