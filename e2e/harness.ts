/**
 * Runs the compiled executables as a user does: with their own database, directories and ports, as
 * real processes. Nothing here imports code of the executables.
 */
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../testing/databases/postgres.ts'
import { NODE_PATH } from '../testing/servers/node-path.ts'
import { freePort } from '../testing/servers/ports.ts'
import { type ServerProcess, startServer } from '../testing/servers/server-process.ts'

const DIST = join(import.meta.dirname, '../dist')
export const SERVER = join(DIST, 'svc-server')
export const CLIENT = join(DIST, 'svc')
/** The client for Node, packed into one file. */
export const PACKED_CLIENT = join(DIST, 'svc-client/svc.mjs')

if (!existsSync(SERVER) || !existsSync(CLIENT)) {
  throw new Error('There are no executables to test: run npm run build, or npm test.')
}

/** Both builds of svc: the command that starts each, and the variables that it needs for that. */
export const CLIENTS: readonly {
  readonly build: string
  readonly command: readonly string[]
  readonly needs: Environment
}[] = [
  { build: 'the executable', command: [CLIENT], needs: {} },
  { build: 'the packed client', command: ['node', PACKED_CLIENT], needs: { PATH: NODE_PATH } },
]

export type Environment = Readonly<Record<string, string>>

/**
 * Keeps svc from optimizing code: a command is over before that pays, and it is a fifth of the CPU
 * time of tests that run many. In the long run svc runs as shipped. The build renames the prefix of
 * the option (build/runtime/neutralise.ts).
 */
const SHORT_COMMANDS: Environment =
  process.env.SVC_TEST_LONG === '1' ? {} : { '=UN_JSC_useDFGJIT': '0' }

export interface Result {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end, with exactly this environment. */
export function run(
  command: readonly string[],
  options: {
    environment?: Environment
    directory?: string
    input?: string
    onStderr?: (text: string) => void
  } = {},
): Promise<Result> {
  const [file = '', ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.directory ?? '/',
      env: { ...options.environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const result = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      result.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      result.stderr += text
      options.onStderr?.(text)
    })
    child.once('error', reject)
    child.once('close', (status) => resolve({ status, ...result }))
    child.stdin.end(options.input ?? '')
  })
}

/** Runs a program that ends within milliseconds, blocking. */
export function runSync(
  command: readonly string[],
  options: { environment?: Environment; directory?: string } = {},
): SpawnSyncReturns<string> {
  const [file = '', ...args] = command
  return spawnSync(file, args, {
    cwd: options.directory ?? '/',
    env: { ...options.environment },
    encoding: 'utf8',
  })
}

export interface Installation {
  /** Temporary directory of all files; removed by `dispose`. */
  readonly directory: string
  readonly productRoot: string
  readonly workspace: string
  readonly codeFile: string
  /** host:port of the application listener. */
  readonly applicationListen: string
  /** Environment of svc-server. Its addresses are fixed, since sessions and links name them. */
  readonly environment: Environment
  /** Environment of svc, with a home of its own. */
  readonly clientEnvironment: Environment
  /** Runs svc. The caller adds `--json` if needed. */
  svc(args: readonly string[], environment?: Environment): Promise<Result>
  /** `args` follow `serve`. */
  start(environment?: Environment, args?: readonly string[]): Promise<ServerProcess>
  /** Kills the servers that still run and removes everything. */
  dispose(): Promise<void>
}

/** Executables of both programs. */
export interface Executables {
  readonly server: string
  readonly client: string
}

/** Creates the database, secrets and directories of one server; the Product root does not exist. */
export async function createInstallation(
  executables: Executables = { server: SERVER, client: CLIENT },
): Promise<Installation> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-'))
  const database = await freshDatabase()
  const within = (name: string): string => join(directory, name)
  for (const name of ['state', 'config', 'run']) mkdirSync(within(name), { mode: 0o700 })
  const secret = (name: string, content: string): string => {
    writeFileSync(within(name), content, { mode: 0o600 })
    return within(name)
  }
  const environment: Environment = {
    SERVICE_IDENTITY_DATABASE_URL_FILE: secret('database-url', database.url),
    SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: secret('pepper', randomBytes(32).toString('base64url')),
    SERVICE_STATE_DIRECTORY: within('state'),
    SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${await freePort()}`,
  }
  const clientEnvironment: Environment = {
    SERVICE_CONFIG_HOME: within('config'),
    SVC_ALLOW_LOOPBACK_HTTP: 'true',
  }
  const running: ServerProcess[] = []
  return {
    directory,
    productRoot: within('product'),
    workspace: within('workspace'),
    codeFile: within('state/bootstrap/initial-owner.code'),
    applicationListen: `127.0.0.1:${await freePort()}`,
    environment,
    clientEnvironment,
    svc: (args, extra = {}) =>
      run([executables.client, ...args], {
        environment: { ...SHORT_COMMANDS, ...clientEnvironment, ...extra },
        directory: within('run'),
      }),
    start: async (extra = {}, args = []) => {
      const server = await startServer({
        executable: executables.server,
        args,
        environment: { ...environment, ...extra },
        directory: within('run'),
      })
      running.push(server)
      return server
    },
    dispose: async () => {
      for (const server of running) server.kill()
      await Promise.all(running.map((server) => server.ended))
      await database.drop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Settings that add the Product and the application listener to those of an installation. */
export function productEnvironment(installation: Installation): Environment {
  return {
    SERVICE_PRODUCT_ROOT: installation.productRoot,
    SERVICE_APPLICATION_LISTEN: installation.applicationListen,
    SERVICE_APPLICATION_TLS_TERMINATED: 'true',
  }
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  /** Parsed JSON; null if there is no body. */
  readonly body: unknown
}

export interface Call {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export async function call(
  origin: string,
  method: string,
  path: string,
  options: Call = {},
): Promise<Reply> {
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers }
  if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
  const init: RequestInit = { method, headers }
  if (options.body !== undefined) {
    headers['content-type'] ??= 'application/json'
    init.body = JSON.stringify(options.body)
  }
  const response = await fetch(origin + path, init)
  const raw = await response.text()
  const body: unknown = raw === '' ? null : JSON.parse(raw)
  return { status: response.status, headers: response.headers, body }
}

/** Returns a text inside a body, such as `text(body, 'session', 'sessionId')`. */
export function text(body: unknown, ...path: readonly (string | number)[]): string {
  let value = body
  for (const key of path) {
    if (value === null || typeof value !== 'object') break
    value = (value as Readonly<Record<string | number, unknown>>)[key]
  }
  if (typeof value !== 'string') throw new Error(`there is no text at ${path.join('.')}`)
  return value
}

/** Consumes the first-owner code over HTTP and returns the Login. */
export async function loginAsOwner(
  installation: Installation,
  server: ServerProcess,
): Promise<unknown> {
  const code = readFileSync(installation.codeFile, 'utf8').trim()
  const reply = await call(server.management, 'POST', '/v1/auth/exchange', { body: { code } })
  if (reply.status !== 201) throw new Error(`the exchange got the status ${reply.status}`)
  return reply.body
}
