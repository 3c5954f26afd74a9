/**
 * Starts a real PostgreSQL for this process: durable, password protected, reachable on 127.0.0.1
 * alone. It ends with this process, even if that is killed.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import {
  isOpenToOthers,
  postgresAccount,
  postgresBinaries,
  sharedTemporaryFolder,
} from '../servers/binaries.ts'
import { freePort, isFree } from '../servers/ports.ts'
import { type Supervised, superviseProcess } from '../servers/supervisor.ts'

export interface Cluster {
  readonly port: number
  /** Connection URL of a database of this cluster, as its superuser. */
  url(database: string): string
  /** Fast shutdown: open connections end, everything acknowledged is on disk. */
  stop(): Promise<void>
  /** Kills PostgreSQL at once. The next start runs recovery. */
  kill(): void
  /** Resolves when PostgreSQL has ended, for any reason. */
  readonly ended: Promise<void>
}

export interface ClusterOptions {
  /** The data directory, created if missing. The account of PostgreSQL must have access to it. */
  readonly dataDirectory: string
  /** Password of the superuser, which an existing cluster does not change. */
  readonly password: string
  /** Preferred port; another one is used if it is not free. */
  readonly preferredPort?: number
  /** Number of ports that are tried if another process takes one in the meantime. */
  readonly attempts?: number
  readonly connectionsMax?: number
}

const SUPERUSER = 'postgres'
const PREFIX = 'svc-test-pg-'
const MEMORY_FOLDER = '/dev/shm'
const MEMORY_BYTES_MIN = 2 * 1024 ** 3
const START_TIMEOUT_MS = 60_000

export function newPassword(): string {
  return randomBytes(24).toString('base64url')
}

/**
 * Creates a folder for the cluster of a test: in memory where there is room, since it need not
 * survive the machine, and databases are created and removed several times faster there.
 */
export function newClusterFolder(): string {
  const folder = mkdtempSync(
    join(hasMemoryFolder() ? MEMORY_FOLDER : sharedTemporaryFolder(), PREFIX),
  )
  const account = postgresAccount()
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid ?? account.uid)
  return folder
}

function hasMemoryFolder(): boolean {
  if (!existsSync(MEMORY_FOLDER) || !isOpenToOthers(MEMORY_FOLDER)) return false
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize >= MEMORY_BYTES_MIN
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const binaries = postgresBinaries()
  if (!existsSync(join(options.dataDirectory, 'PG_VERSION'))) {
    initialize(binaries, options)
  }
  const attempts = options.attempts ?? 5
  for (let attempt = 1; ; attempt++) {
    const port = await choosePort(attempt === 1 ? options.preferredPort : undefined)
    const run = launch(binaries, options, port)
    const problem = await untilReady(run, port, options.password)
    if (problem === null) return clusterOf(run, port, options.password)
    run.supervised.kill()
    await run.supervised.ended
    if (attempt === attempts || !problem.includes('in use')) {
      throw new Error(`PostgreSQL did not start: ${problem}`)
    }
  }
}

interface Run {
  readonly supervised: Supervised
  output: string
}

function initialize(binaries: string, options: ClusterOptions): void {
  const account = postgresAccount()
  mkdirSync(options.dataDirectory, { recursive: true, mode: 0o700 })
  const passwordFile = `${options.dataDirectory}.password`
  writeFileSync(passwordFile, options.password, { mode: 0o600 })
  chmodSync(options.dataDirectory, 0o700)
  if (account.uid !== undefined) {
    chownSync(options.dataDirectory, account.uid, account.gid ?? account.uid)
    chownSync(passwordFile, account.uid, account.gid ?? account.uid)
  }
  const args = [
    '--pgdata',
    options.dataDirectory,
    '--username',
    SUPERUSER,
    '--pwfile',
    passwordFile,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
  ]
  const result = spawnSync(join(binaries, 'bin', 'initdb'), args, {
    ...account,
    cwd: '/',
    encoding: 'utf8',
    env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
  })
  rmSync(passwordFile, { force: true })
  if (result.status !== 0) {
    // The next start would mistake an incomplete cluster for a complete one.
    rmSync(options.dataDirectory, { recursive: true, force: true })
    throw new Error(`initdb failed: ${result.error?.message ?? ''}${result.stderr}`)
  }
}

function launch(binaries: string, options: ClusterOptions, port: number): Run {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    fsync: 'on',
    synchronous_commit: 'on',
    max_connections: String(options.connectionsMax ?? 200),
    logging_collector: 'off',
    timezone: 'UTC',
  }
  const command = [join(binaries, 'bin', 'postgres'), '-D', options.dataDirectory]
  for (const [name, value] of Object.entries(settings)) command.push('-c', `${name}=${value}`)
  const supervised = superviseProcess(command, {
    ...postgresAccount(),
    // A fast shutdown: TERM would wait for every client to disconnect.
    signal: 'INT',
    directory: '/',
    environment: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
  })
  supervised.stdout.resume()
  const run: Run = { supervised, output: '' }
  supervised.stderr.on('data', (text: string) => {
    run.output = (run.output + text).slice(-8192)
  })
  return run
}

/** Waits for the first successful query. Returns null, or the message of PostgreSQL. */
async function untilReady(run: Run, port: number, password: string): Promise<string | null> {
  let over = false
  void run.supervised.ended.then(() => {
    over = true
  })
  const deadline = performance.now() + START_TIMEOUT_MS
  let last = 'no answer'
  while (performance.now() < deadline) {
    if (over) return run.output || last
    try {
      await execute(urlOf(port, password, 'postgres'), 'select 1')
      return null
    } catch (error) {
      last = error instanceof Error ? error.message : String(error)
    }
    await delay(25)
  }
  return `${last}; ${run.output}`
}

function clusterOf(run: Run, port: number, password: string): Cluster {
  return {
    port,
    ended: run.supervised.ended.then(() => undefined),
    url: (database) => urlOf(port, password, database),
    stop: async () => {
      await run.supervised.stop()
    },
    kill: () => run.supervised.kill(),
  }
}

function urlOf(port: number, password: string, database: string): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`
}

/** Runs one statement on a new connection. */
export async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

async function choosePort(preferred: number | undefined): Promise<number> {
  return preferred !== undefined && (await isFree(preferred)) ? preferred : freePort()
}

/** A PostgreSQL of one test, which can be stopped, killed and started again. */
export interface OwnCluster {
  /** Temporary folder with the data directory. */
  readonly folder: string
  /** Connection URL, which does not change with a restart. */
  readonly url: string
  stop(): Promise<void>
  /** Ends all sessions at once, like a crash. The next start recovers from the log. */
  kill(): Promise<void>
  start(): Promise<void>
  dispose(): Promise<void>
}

export async function ownCluster(): Promise<OwnCluster> {
  const folder = newClusterFolder()
  const options = { dataDirectory: join(folder, 'data'), password: newPassword() }
  let cluster: Cluster = await startCluster(options)
  const { port } = cluster
  return {
    folder,
    url: cluster.url('postgres'),
    stop: () => cluster.stop(),
    kill: async () => {
      // An immediate shutdown: after SIGKILL sessions could commit for another moment.
      const [pid] = readFileSync(join(options.dataDirectory, 'postmaster.pid'), 'utf8').split('\n')
      process.kill(Number(pid), 'SIGQUIT')
      await cluster.ended
    },
    start: async () => {
      cluster = await startCluster({ ...options, preferredPort: port })
      if (cluster.port !== port) throw new Error('another process has taken the port')
    },
    dispose: async () => {
      await cluster.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
