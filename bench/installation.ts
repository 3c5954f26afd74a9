/**
 * An installation for the bench: PostgreSQL, the compiled server with its documents in one of the
 * stores, a released Workspace and an Application Key.
 */
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { assert } from '../src/errors/assert.ts'
import { execute, newPassword, startCluster } from '../testing/databases/cluster.ts'
import { postgresAccount, sharedTemporaryFolder } from '../testing/servers/binaries.ts'
import { type ServerProcess, startServer } from '../testing/servers/server-process.ts'
import type { LoadOptions } from './load.ts'
import { writeBenchWorkspace } from './workspace.ts'

export type Documents = 'sqlite' | 'postgres'
/** One of the server's origins and the headers of each request to it. */
export type Target = Pick<LoadOptions, 'port' | 'headers'>

export interface BenchInstallation {
  /** Temporary directory on the same disk as the Product root. */
  readonly directory: string
  readonly application: Target
  /** The management origin, with the owner's first access token, which expires after 10 minutes. */
  readonly management: Target
  /** Path of the Environment on the management origin. */
  readonly base: string
  /** The Release that the Channel `production` was bound to first. */
  readonly releaseId: string
  /** Publishes the Workspace whose Functions return this number. Returns the Release's ID. */
  release(number: number): string
  /** Runs a command on the Product root without blocking this process. Returns its output. */
  svc(args: readonly string[], environment?: Record<string, string>): Promise<Printed>
  /** The database of the documents, null if they are in SQLite. */
  readonly documentsUrl: string | null
  /** Creates an empty database beside the server's own and returns its URL. */
  newDatabase(): Promise<string>
  /**
   * Stops the server by SIGTERM and starts it again, at other ports. Returns the milliseconds from
   * the signal until it is ready.
   */
  restart(): Promise<number>
  dispose(): Promise<void>
}

const DIST = join(import.meta.dirname, '../dist')
const SCOPES = ['--scopes', 'action,mutation,query,realtime']
/** The highest rate limit of a credential, per second, so that the server is the bottleneck. */
const RATE_LIMIT = 1_000_000

export interface InstallationOptions {
  /** The server; by default the one that was built. */
  readonly executable?: string
  /** Settings of the server, in addition to those of every installation. */
  readonly environment?: Readonly<Record<string, string>>
}

export async function benchInstallation(
  documents: Documents,
  { executable = join(DIST, 'svc-server'), environment = {} }: InstallationOptions = {},
): Promise<BenchInstallation> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const data = mkdtempSync(join(sharedTemporaryFolder(), 'svc-bench-pg-'))
  const account = postgresAccount()
  if (account.uid !== undefined) chownSync(data, account.uid, account.gid ?? account.uid)
  const cluster = await startCluster({ dataDirectory: join(data, 'data'), password: newPassword() })
  const newDatabase = async (): Promise<string> => {
    const name = `bench_${randomBytes(8).toString('hex')}`
    await execute(cluster.url('postgres'), `create database ${name}`)
    return cluster.url(name)
  }
  const documentsUrl = documents === 'postgres' ? await newDatabase() : null
  const serve = initialize(directory, executable, {
    SERVICE_IDENTITY_DATABASE_URL: cluster.url('postgres'),
    ...environment,
    ...(documentsUrl !== null && { SERVICE_PLATFORM_DATABASE_URL: documentsUrl }),
  })
  let server = await serve()
  const { accessToken, key, base, releaseId } = await release(directory, server.management)
  const accept = { accept: 'application/json' }
  return {
    directory,
    get application() {
      return {
        port: Number(new URL(server.application!).port),
        headers: { ...accept, 'content-type': 'application/json', 'x-service-key': key },
      }
    },
    get management() {
      return {
        port: Number(new URL(server.management).port),
        headers: { ...accept, authorization: `Bearer ${accessToken}` },
      }
    },
    base,
    releaseId,
    release: (number) => {
      writeBenchWorkspace(join(directory, 'workspace'), number)
      return svc(directory, ['release', '--remote']).releaseId
    },
    svc: async (args, more) => {
      const { command, options } = commandOf(directory, args, more)
      const { stdout } = await promisify(execFile)(command[0]!, command.slice(1), options)
      return JSON.parse(stdout)
    },
    documentsUrl,
    newDatabase,
    restart: async () => {
      const startedMillis = performance.now()
      await server.stop()
      server = await serve()
      return performance.now() - startedMillis
    },
    dispose: async () => {
      await server.stop()
      await cluster.stop()
      rmSync(directory, { recursive: true, force: true })
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** Creates the Product root and returns the function that starts its server. */
function initialize(
  directory: string,
  executable: string,
  more: Record<string, string>,
): () => Promise<ServerProcess> {
  const within = (name: string): string => join(directory, name)
  for (const name of ['state', 'config']) mkdirSync(within(name), { mode: 0o700 })
  writeBenchWorkspace(within('workspace'))
  svc(directory, ['init', '--workspace', within('workspace'), '--name', 'Bench'])
  const environment = {
    SERVICE_PLATFORM_IDENTITY_PEPPER: randomBytes(32).toString('base64url'),
    SERVICE_STATE_DIRECTORY: within('state'),
    SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
    SERVICE_PRODUCT_ROOT: within('product'),
    SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
    SERVICE_APPLICATION_TLS_TERMINATED: 'true',
    // All connections of the bench come from one address, with one credential.
    SERVICE_REALTIME_CONNECTIONS_PER_CREDENTIAL_MAX: '20000',
    SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX: '20000',
    ...more,
  }
  return () => startServer({ executable, directory, environment })
}

/** Logs in, promotes the Workspace and creates an Application Key. */
async function release(directory: string, management: string) {
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8')
  const code = read('state/bootstrap/initial-owner.code').trim()
  svc(directory, ['login', '--url', management, '--code-env', 'CODE'], { CODE: code })
  const { projectId, environmentId } = JSON.parse(read('product/service.json'))
  svc(directory, ['link', '--project-id', projectId, '--environment-id', environmentId])
  const { releaseId } = svc(directory, ['release', '--remote', '--channel', 'production'])
  const named = ['--remote', '--name', 'bench', ...SCOPES]
  const create = ['clients', 'create', ...named, '--kind', 'confidential']
  const { clientId } = svc(directory, create).client
  const limit = ['--client', clientId, '--rate-limit', String(RATE_LIMIT)]
  const { key } = svc(directory, ['credentials', 'create', ...named, ...limit])
  const accessToken: string = JSON.parse(read('config/credentials-v1.json')).accessToken
  const base = `/v1/projects/${projectId}/environments/${environmentId}`
  return { accessToken, key, base, releaseId }
}

/** The fields that are read from the output of commands. */
export interface Printed {
  readonly client: { readonly clientId: string }
  readonly key: string
  readonly counters: Readonly<Record<string, string>>
  readonly releaseId: string
}

/** Runs a command on the Product root of the installation. */
function svc(
  directory: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): Printed {
  const { command, options } = commandOf(directory, args, environment)
  const run = spawnSync(command[0]!, command.slice(1), options)
  assert(
    run.status === 0,
    `svc ${args.join(' ')} ended with ${run.status}: ${run.stdout}${run.stderr}`,
  )
  return JSON.parse(run.stdout) as Printed
}

function commandOf(
  directory: string,
  args: readonly string[],
  environment: Record<string, string> = {},
) {
  const within = (name: string): string => join(directory, name)
  const root = args[0] === 'login' ? [] : ['--root', within('product')]
  const env = {
    SERVICE_CONFIG_HOME: within('config'),
    SVC_ALLOW_LOOPBACK_HTTP: 'true',
    ...environment,
  }
  const options = { env, encoding: 'utf8' } as const
  return { command: [join(DIST, 'svc'), ...args, ...root, '--json'], options }
}
