/**
 * `npm start`: a complete running service with PostgreSQL, svc-server, an owner, a released
 * Workspace, keys and a first message. It drives the compiled executables as a user would, through
 * their command line and HTTP alone, and a second start continues with the state of the first.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, execute, startCluster } from '../testing/databases/cluster.ts'
import { freePort, isFree } from '../testing/servers/ports.ts'
import { type ServerProcess, startServer } from '../testing/servers/server-process.ts'
import { addHook, hookCommand, MOUNT, SECRET } from './quickstart/hook.ts'
import { bundlePage, type ServedPage, servePage } from './quickstart/page.ts'
import {
  type Decisions,
  ensurePepper,
  FIRST_SCOPES,
  newKeyIds,
  newOperationId,
  type Paths,
  preparePaths,
  readDecisions,
  writeDecisions,
  writePrivate,
} from './quickstart/paths.ts'
import { commandsText, message, type Shown, summary, TARGET } from './quickstart/printed.ts'
import {
  type Client,
  clientAt,
  Problem,
  runProgram,
  say,
  stopRequests,
  untilReady,
} from './quickstart/steps.ts'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')
const DATABASE = 'svc_identity'
const MANAGEMENT_PORT = 3220
const APPLICATION_PORT = 3210
const PAGE_PORT = 5173

type Environment = Readonly<Record<string, string>>

interface Run {
  readonly paths: Paths
  readonly decisions: Decisions
  readonly signal: AbortSignal
  cluster: Cluster | null
  server: ServerProcess | null
  page: ServedPage | null
}

async function startDatabase(run: Run): Promise<void> {
  const { paths, decisions } = run
  const isNew = !existsSync(join(paths.database, 'PG_VERSION'))
  say(`Starting PostgreSQL 18${isNew ? ' with a new database' : ''} ...`)
  try {
    run.cluster = await startCluster({
      dataDirectory: paths.database,
      password: decisions.databasePassword,
      ...(decisions.databasePort === null ? {} : { preferredPort: decisions.databasePort }),
    })
  } catch (error) {
    const text = String(error)
    if (!text.includes('postmaster.pid')) throw error
    throw new Problem('Another npm start runs in this checkout: its PostgreSQL holds the data.')
  }
  run.signal.throwIfAborted()
  decisions.databasePort = run.cluster.port
  writeDecisions(paths, decisions)
  const exists = await execute(run.cluster.url(DATABASE), 'select 1').then(
    () => true,
    () => false,
  )
  if (!exists) await execute(run.cluster.url('postgres'), `create database ${DATABASE}`)
  writePrivate(join(paths.home, 'database-url'), run.cluster.url(DATABASE))
  ensurePepper(join(paths.home, 'pepper'))
  say(`  PostgreSQL on 127.0.0.1:${run.cluster.port}, data in ${paths.database}`)
}

/** The session and the link of the root name one Management address, so it never changes. */
async function choosePorts({ decisions, paths }: Run): Promise<void> {
  const wanted = decisions.managementPort
  if (wanted !== null && !(await isFree(wanted))) {
    throw new Problem(
      `127.0.0.1:${wanted} is in use, and the stored session belongs to it.\n` +
        `Stop what uses it, or remove ${paths.home} to start anew.`,
    )
  }
  const near = async (port: number): Promise<number> => ((await isFree(port)) ? port : freePort())
  decisions.managementPort = wanted ?? (await near(MANAGEMENT_PORT))
  decisions.applicationPort = await near(decisions.applicationPort ?? APPLICATION_PORT)
  // A browser keeps unsent messages of the page by its address.
  decisions.pagePort = await near(decisions.pagePort ?? PAGE_PORT)
  writeDecisions(paths, decisions)
}

function serverEnvironment({ paths, decisions }: Run): Record<string, string> {
  return {
    SERVICE_IDENTITY_DATABASE_URL_FILE: join(paths.home, 'database-url'),
    SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: join(paths.home, 'pepper'),
    SERVICE_STATE_DIRECTORY: paths.state,
    SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${decisions.managementPort}`,
    SERVICE_PRODUCT_ROOT: paths.productRoot,
    SERVICE_APPLICATION_LISTEN: `127.0.0.1:${decisions.applicationPort}`,
    SERVICE_APPLICATION_TLS_TERMINATED: 'true',
    SERVICE_PRODUCT_ALLOWED_ORIGINS: ['127.0.0.1', 'localhost']
      .map((host) => `http://${host}:${decisions.pagePort}`)
      .join(','),
    SERVICE_BACKUP_DIRECTORY: paths.backups,
    SERVICE_BACKUP_RECIPIENTS: decisions.backupRecipient ?? '',
  }
}

function clientEnvironment({ paths, decisions }: Run): Record<string, string> {
  const home = { SERVICE_CONFIG_HOME: paths.config }
  const isUsual = decisions.managementPort === MANAGEMENT_PORT
  return isUsual ? home : { ...home, SVC_ALLOW_LOOPBACK_HTTP: 'true' }
}

/** Creates the key of backups once. A key whose recipient was not noted has opened none. */
async function makeBackupKey({ paths, decisions }: Run, svc: Client): Promise<void> {
  if (decisions.backupRecipient !== undefined) return
  say('Making a key for the backups of the server (svc backup keygen) ...')
  rmSync(paths.backupKey, { force: true })
  const { recipient } = await svc('backup', 'keygen', '--out', paths.backupKey)
  if (typeof recipient !== 'string') throw new Problem('svc backup keygen printed no recipient.')
  decisions.backupRecipient = recipient
  writeDecisions(paths, decisions)
}

async function startService(run: Run, svc: Client): Promise<ServerProcess> {
  const { paths, decisions, signal } = run
  if (!existsSync(join(paths.productRoot, 'service.json'))) {
    say('Creating the Product root and a chat Workspace (svc init) ...')
    const where = ['--root', paths.productRoot, '--workspace', paths.workspace]
    await svc('init', ...where, '--name', 'chat')
    decisions.hookSecret = addHook(paths.workspace)
    writeDecisions(paths, decisions)
  }
  await makeBackupKey(run, svc)
  say('Applying the identity schema (svc-server migrate) ...')
  const environment = serverEnvironment(run)
  const migrated = await runProgram([join(DIST, 'svc-server'), 'migrate'], environment, signal)
  if (migrated.status !== 0) throw new Problem(`svc-server migrate failed:\n${migrated.stderr}`)
  say('Starting the server (svc-server serve) ...')
  writeFileSync(paths.log, '', { mode: 0o600 })
  const server = await startServer({
    executable: join(DIST, 'svc-server'),
    environment,
    directory: paths.home,
    onLine: (line) => appendFileSync(paths.log, `${line}\n`),
  })
  run.server = server
  await untilReady(`${server.management}/health/ready`, signal)
  say(`  Management API on ${server.management}, Application API on ${server.application}`)
  return server
}

async function logIn(run: Run, server: ServerProcess, svc: Client): Promise<void> {
  const { paths, signal } = run
  if (!existsSync(paths.credentials)) {
    if (!existsSync(paths.codeFile)) {
      throw new Problem(`The owner's session is gone. Remove ${paths.home} to start anew.`)
    }
    say('Logging in as the first owner with the code of the state directory (svc login) ...')
    const code = readFileSync(paths.codeFile, 'utf8').trim()
    const environment = { ...clientEnvironment(run), SVC_CODE: code }
    const login = clientAt(DIST, environment, signal)
    await login('login', '--url', server.management, '--code-env', 'SVC_CODE')
  }
  await svc('link', '--root', paths.productRoot)
}

/** Mounts the hook. Returns its secret; null for a Workspace of a version without hooks. */
async function mountHook({ paths, decisions, signal }: Run, environment: Environment) {
  const { hookSecret, channelId } = decisions
  if (hookSecret === undefined) return null
  if (channelId !== null) return hookSecret
  say('Mounting the hook of the Workspace (svc config set, svc http mount) ...')
  const svc = clientAt(DIST, { ...environment, [SECRET]: hookSecret }, signal)
  const at = ['--remote', '--root', paths.productRoot]
  await svc('config', 'set', SECRET, '--secret', '--value-env', SECRET, ...at)
  await svc('http', 'mount', MOUNT, '--target', TARGET, ...at)
  return hookSecret
}

/** Returns the public key. The secret key is written into its file, once. */
async function createKeys({ paths, decisions }: Run, svc: Client): Promise<string> {
  say('Creating Application Clients and keys (svc clients, svc credentials) ...')
  const at = ['--remote', '--root', paths.productRoot]
  const name = ['--name', 'quickstart']
  const ids = decisions.keys ?? newKeyIds()
  // With the same identifiers nothing is created again, and the public key is derived again.
  const client = [
    '--client-id',
    ids.publicClientId,
    '--kind',
    'public',
    '--scopes',
    ids.scopes ?? FIRST_SCOPES,
  ]
  await svc('clients', 'create', ...at, ...name, ...client)
  const credential = ['--client', ids.publicClientId, '--credential-id', ids.publicCredentialId]
  const { key } = await svc('credentials', 'create', ...at, ...name, ...credential)
  if (typeof key !== 'string') throw new Problem('The server returned no public key.')
  decisions.keys = ids
  writeDecisions(paths, decisions)
  if (!hasText(paths.secretKeyFile)) {
    // An interrupted run may have created a key without storing it; no key is shown twice.
    rmSync(paths.secretKeyFile, { force: true })
    const made = await svc('clients', 'create', ...at, ...name, '--kind', 'confidential')
    const of = ['--client', made.client?.clientId ?? '', '--key-out', paths.secretKeyFile]
    await svc('credentials', 'create', ...at, ...name, ...of)
  }
  return key
}

function hasText(path: string): boolean {
  return existsSync(path) && readFileSync(path, 'utf8').trim() !== ''
}

async function firstMessage(run: Run, application: string, key: string): Promise<string> {
  const { decisions, paths, signal } = run
  if (decisions.channelId !== null) return decisions.channelId
  say('Creating a channel and a message by calling the Application API ...')
  const invoke = async (name: string, operationId: string, given: object) => {
    const response = await fetch(`${application}/v1/functions/${name}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-key': key,
        'x-service-target': TARGET,
        'idempotency-key': operationId,
      },
      body: JSON.stringify(given),
      signal,
    })
    const answer = await response.json()
    if (answer.status !== 'ok') {
      throw new Problem(`The first Mutation failed: ${JSON.stringify(answer.error)}`)
    }
    return answer.result
  }
  const { channelOperationId, messageOperationId } = decisions
  const general = { name: 'general', author: 'quickstart' }
  const channelId = await invoke('channels.create', channelOperationId, general)
  await invoke('messages.send', messageOperationId, message(channelId, 'It works.'))
  decisions.channelId = channelId
  writeDecisions(paths, decisions)
  return channelId
}

/** Returns null if the Workspace has no page, or one that cannot be bundled. */
async function startPage(run: Run, url: string, applicationKey: string): Promise<string | null> {
  const { workspace } = run.paths
  if (!existsSync(join(workspace, 'web/index.html'))) return null
  say('Serving the page of chat ...')
  const settings = JSON.stringify({ url, applicationKey, target: TARGET })
  try {
    const files = await bundlePage(workspace, `export const settings = ${settings}`)
    run.page = await servePage(files, run.decisions.pagePort!)
    return run.page.url
  } catch (error) {
    say(`  The page is not served: ${String(error)}`)
    return null
  }
}

async function bringUp(run: Run): Promise<Shown> {
  const { paths, signal } = run
  await startDatabase(run)
  await choosePorts(run)
  const environment = clientEnvironment(run)
  const svc = clientAt(DIST, environment, signal)
  const server = await startService(run, svc)
  await logIn(run, server, svc)
  say('Building and releasing the Workspace (svc release) ...')
  const { productRoot } = paths
  await svc('release', '--remote', '--root', productRoot, '--channel', 'production')
  const application = server.application ?? ''
  await untilReady(`${application}/readyz`, signal)
  const publicKey = await createKeys(run, svc)
  const hookSecret = await mountHook(run, environment)
  const channelId = await firstMessage(run, application, publicKey)
  const isLive = (run.decisions.keys?.scopes ?? FIRST_SCOPES).includes('realtime')
  const page = isLive ? await startPage(run, application, publicKey) : null
  say('Ready.')
  return {
    page,
    commands: paths.commands,
    management: server.management,
    application,
    publicKey,
    secretKeyFile: paths.secretKeyFile,
    channelId,
    hook: hookSecret === null ? null : hookCommand(application, hookSecret, channelId),
    operationId: newOperationId(),
    client: join(DIST, 'svc'),
    clientEnvironment: environment,
    productRoot,
    workspace: paths.workspace,
    backups: paths.backups,
    backupKey: paths.backupKey,
    log: paths.log,
    isLive,
  }
}

/** Resolves when the user stops the service; rejects when a process ends unexpectedly. */
function untilStopped({ server, cluster, paths, signal }: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
    void server?.ended.then((status) =>
      reject(
        new Problem(
          `svc-server ended with status ${status}. Its last lines, from ${paths.log}:\n` +
            server.lines.slice(-20).join('\n'),
        ),
      ),
    )
    void cluster?.ended.then(() => reject(new Problem('PostgreSQL ended.')))
  })
}

async function shutDown({ server, cluster, page }: Run): Promise<void> {
  page?.close()
  if (server !== null) {
    say('Stopping the server ...')
    await server.stop()
  }
  if (cluster !== null) {
    say('Stopping PostgreSQL ...')
    await cluster.stop()
  }
  say('Stopped.')
}

async function main(): Promise<number> {
  const paths = preparePaths(process.env.SVC_QUICKSTART_HOME ?? join(ROOT, '.svc'))
  const decisions = readDecisions(paths)
  const signal = stopRequests(() => {
    run.server?.kill()
    run.cluster?.kill()
    process.exit(130)
  })
  const run: Run = { paths, decisions, signal, cluster: null, server: null, page: null }
  try {
    const shown = await bringUp(run)
    writePrivate(paths.commands, commandsText(shown))
    process.stdout.write(summary(shown))
    await untilStopped(run)
    return 0
  } catch (error) {
    if (signal.aborted) return 0
    process.stderr.write(error instanceof Problem ? `\n${error.message}\n` : `\n${String(error)}\n`)
    return 1
  } finally {
    await shutDown(run)
  }
}

process.exit(await main())
