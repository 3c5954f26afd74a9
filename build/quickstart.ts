/**
 * A whole running service for `npm start`: PostgreSQL, svc-server, an owner, a released Workspace,
 * keys and a first message. It drives the compiled executables as a user would, through their
 * command line and HTTP alone, and finds at a second start what the first one left.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Decisions,
  ensurePepper,
  newKeyIds,
  newOperationId,
  openPlaces,
  type Places,
  readDecisions,
  writeDecisions,
  writePrivate,
} from './quickstart/places.ts'
import { mutationBody, type Shown, summary, TARGET, taggedObject } from './quickstart/printed.ts'
import {
  type Client,
  clientAt,
  Problem,
  runProgram,
  say,
  stopRequests,
  untilReady,
} from './quickstart/steps.ts'
import { type Cluster, execute, startCluster } from './testing/databases/cluster.ts'
import { freePort, isFree } from './testing/servers/ports.ts'
import { type ServerProcess, startServer } from './testing/servers/server-process.ts'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')
const DATABASE = 'svc_identity'
const MANAGEMENT_PORT = 3220
const APPLICATION_PORT = 3210

interface Run {
  readonly places: Places
  readonly decisions: Decisions
  readonly signal: AbortSignal
  cluster: Cluster | null
  server: ServerProcess | null
}

async function startDatabase(run: Run): Promise<void> {
  const { places, decisions } = run
  const isNew = !existsSync(join(places.database, 'PG_VERSION'))
  say(`Starting PostgreSQL 18${isNew ? ' with a new database' : ''} ...`)
  try {
    run.cluster = await startCluster({
      dataDirectory: places.database,
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
  writeDecisions(places, decisions)
  const exists = await execute(run.cluster.url(DATABASE), 'select 1').then(
    () => true,
    () => false,
  )
  if (!exists) await execute(run.cluster.url('postgres'), `create database ${DATABASE}`)
  writePrivate(join(places.home, 'database-url'), run.cluster.url(DATABASE))
  ensurePepper(join(places.home, 'pepper'))
  say(`  PostgreSQL on 127.0.0.1:${run.cluster.port}, data in ${places.database}`)
}

/** The session and the link of the root belong to one Management address, so it never moves. */
async function choosePorts({ decisions, places }: Run): Promise<void> {
  const wanted = decisions.managementPort
  if (wanted !== null && !(await isFree(wanted))) {
    throw new Problem(
      `127.0.0.1:${wanted} is in use, and the stored session belongs to it.\n` +
        `Stop what uses it, or remove ${places.home} to start anew.`,
    )
  }
  const near = async (port: number): Promise<number> => ((await isFree(port)) ? port : freePort())
  decisions.managementPort = wanted ?? (await near(MANAGEMENT_PORT))
  decisions.applicationPort = await near(decisions.applicationPort ?? APPLICATION_PORT)
  writeDecisions(places, decisions)
}

function serverEnvironment({ places, decisions }: Run): Record<string, string> {
  return {
    SERVICE_IDENTITY_DATABASE_URL_FILE: join(places.home, 'database-url'),
    SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: join(places.home, 'pepper'),
    SERVICE_STATE_DIRECTORY: places.state,
    SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${decisions.managementPort}`,
    SERVICE_PRODUCT_ROOT: places.productRoot,
    SERVICE_APPLICATION_LISTEN: `127.0.0.1:${decisions.applicationPort}`,
    SERVICE_APPLICATION_TLS_TERMINATED: 'true',
  }
}

function clientEnvironment({ places, decisions }: Run): Record<string, string> {
  const home = { SERVICE_CONFIG_HOME: places.config }
  const isUsual = decisions.managementPort === MANAGEMENT_PORT
  return isUsual ? home : { ...home, SVC_ALLOW_LOOPBACK_HTTP: 'true' }
}

async function startService(run: Run, svc: Client): Promise<ServerProcess> {
  const { places, signal } = run
  if (!existsSync(join(places.productRoot, 'service.json'))) {
    say('Creating the Product root and a chat Workspace (svc init) ...')
    const where = ['--root', places.productRoot, '--workspace', places.workspace]
    await svc('init', ...where, '--name', 'chat')
  }
  say('Applying the identity schema (svc-server migrate) ...')
  const environment = serverEnvironment(run)
  const migrated = await runProgram([join(DIST, 'svc-server'), 'migrate'], environment, signal)
  if (migrated.status !== 0) throw new Problem(`svc-server migrate failed:\n${migrated.stderr}`)
  say('Starting the server (svc-server serve) ...')
  writeFileSync(places.log, '', { mode: 0o600 })
  const server = await startServer({
    executable: join(DIST, 'svc-server'),
    environment,
    directory: places.home,
    onLine: (line) => appendFileSync(places.log, `${line}\n`),
  })
  run.server = server
  await untilReady(`${server.management}/health/ready`, signal)
  say(`  Management API on ${server.management}, Application API on ${server.application}`)
  return server
}

async function logIn(run: Run, server: ServerProcess, svc: Client): Promise<void> {
  const { places, signal } = run
  if (!existsSync(places.credentials)) {
    if (!existsSync(places.codeFile)) {
      throw new Problem(`The owner's session is gone. Remove ${places.home} to start anew.`)
    }
    say('Logging in as the first owner with the code of the state directory (svc login) ...')
    const code = readFileSync(places.codeFile, 'utf8').trim()
    const environment = { ...clientEnvironment(run), SVC_CODE: code }
    const login = clientAt(DIST, environment, signal)
    await login('login', '--url', server.management, '--code-env', 'SVC_CODE')
  }
  await svc('link', '--root', places.productRoot)
}

/** Answers the public key; the secret one goes into its file, once. */
async function createKeys({ places, decisions }: Run, svc: Client): Promise<string> {
  say('Creating Application Clients and keys (svc clients, svc credentials) ...')
  const at = ['--remote', '--root', places.productRoot]
  const name = ['--name', 'quickstart']
  const ids = decisions.keys ?? newKeyIds()
  // The same identifiers again: nothing is made anew, and the public key is derived again.
  const client = ['--client-id', ids.publicClientId, '--kind', 'public']
  await svc('clients', 'create', ...at, ...name, ...client)
  const credential = ['--client', ids.publicClientId, '--credential-id', ids.publicCredentialId]
  const { key } = await svc('credentials', 'create', ...at, ...name, ...credential)
  if (typeof key !== 'string') throw new Problem('The public key was not answered.')
  decisions.keys = ids
  writeDecisions(places, decisions)
  if (!hasText(places.secretKeyFile)) {
    // A run that broke off may have made a key without keeping it; it is never shown again.
    rmSync(places.secretKeyFile, { force: true })
    const made = await svc('clients', 'create', ...at, ...name, '--kind', 'confidential')
    const of = ['--client', made.client?.clientId ?? '', '--key-out', places.secretKeyFile]
    await svc('credentials', 'create', ...at, ...name, ...of)
  }
  return key
}

function hasText(path: string): boolean {
  return existsSync(path) && readFileSync(path, 'utf8').trim() !== ''
}

async function firstMessage(run: Run, application: string, key: string): Promise<string> {
  const { decisions, places, signal } = run
  if (decisions.channelId !== null) return decisions.channelId
  say('Creating a channel and a message by calling the Application API ...')
  const invoke = async (body: object) => {
    const response = await fetch(`${application}/v1/mutation`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': key },
      body: JSON.stringify(body),
      signal,
    })
    const answer = await response.json()
    if (answer.status !== 'ok') {
      throw new Problem(`The first Mutation failed: ${JSON.stringify(answer.error)}`)
    }
    return answer.result
  }
  const text = (value: string) => ({ type: 'string', value })
  const channel = await invoke({
    version: 1,
    target: TARGET,
    function: 'channels.create',
    operationId: decisions.channelOperationId,
    arguments: taggedObject({ name: text('general'), author: text('quickstart') }),
  })
  await invoke(mutationBody(channel.value, 'It works.', decisions.messageOperationId))
  decisions.channelId = channel.value
  writeDecisions(places, decisions)
  return channel.value
}

async function bringUp(run: Run): Promise<Shown> {
  const { places, signal } = run
  await startDatabase(run)
  await choosePorts(run)
  const environment = clientEnvironment(run)
  const svc = clientAt(DIST, environment, signal)
  const server = await startService(run, svc)
  await logIn(run, server, svc)
  say('Building and releasing the Workspace (svc release) ...')
  const { productRoot } = places
  await svc('release', '--remote', '--root', productRoot, '--channel', 'production')
  const application = server.application ?? ''
  await untilReady(`${application}/readyz`, signal)
  const publicKey = await createKeys(run, svc)
  const channelId = await firstMessage(run, application, publicKey)
  say('Ready.')
  return {
    management: server.management,
    application,
    publicKey,
    secretKeyFile: places.secretKeyFile,
    channelId,
    operationId: newOperationId(),
    client: join(DIST, 'svc'),
    clientEnvironment: environment,
    productRoot,
    workspace: places.workspace,
    log: places.log,
  }
}

/** Resolves when the user stops it; rejects when something ends by itself. */
function untilStopped({ server, cluster, places, signal }: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
    void server?.ended.then((status) =>
      reject(
        new Problem(
          `svc-server ended with status ${status}. Its last words, from ${places.log}:\n` +
            server.lines.slice(-20).join('\n'),
        ),
      ),
    )
    void cluster?.ended.then(() => reject(new Problem('PostgreSQL ended.')))
  })
}

async function shutDown({ server, cluster }: Run): Promise<void> {
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
  const places = openPlaces(process.env.SVC_QUICKSTART_HOME ?? join(ROOT, '.svc'))
  const decisions = readDecisions(places)
  const signal = stopRequests(() => {
    run.server?.kill()
    run.cluster?.kill()
    process.exit(130)
  })
  const run: Run = { places, decisions, signal, cluster: null, server: null }
  try {
    process.stdout.write(summary(await bringUp(run)))
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
