/** An installation for the bench: PostgreSQL, the compiled server, a released Workspace, a key. */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { postgresAccount, sharedTemporaryFolder } from '../testing/binaries.ts'
import { newPassword, startCluster } from '../testing/cluster.ts'
import { startServer } from '../testing/server-process.ts'
import { writeBenchWorkspace } from './workspace.ts'

const DIST = join(import.meta.dirname, '../../dist')

export interface BenchInstallation {
  readonly applicationPort: number
  readonly key: string
  readonly managementPort: number
  /** The owner's, as of now; it lives 10 minutes. */
  readonly accessToken: string
  /** Of the identity database. */
  readonly databaseUrl: string
  dispose(): Promise<void>
}

export async function benchInstallation(): Promise<BenchInstallation> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const data = mkdtempSync(join(sharedTemporaryFolder(), 'svc-bench-pg-'))
  const account = postgresAccount()
  if (account.uid !== undefined) chownSync(data, account.uid, account.gid ?? account.uid)
  const cluster = await startCluster({ dataDirectory: join(data, 'data'), password: newPassword() })
  const within = (name: string): string => join(directory, name)
  for (const name of ['state', 'config']) mkdirSync(within(name), { mode: 0o700 })
  const environment = { SERVICE_CONFIG_HOME: within('config'), SVC_ALLOW_LOOPBACK_HTTP: 'true' }
  const svc = (args: readonly string[], extra: Record<string, string> = {}) =>
    client(args, { ...environment, ...extra })
  writeBenchWorkspace(within('workspace'))
  const root = ['--root', within('product')]
  await svc(['init', ...root, '--workspace', within('workspace'), '--name', 'Bench'])
  const server = await startServer({
    executable: join(DIST, 'svc-server'),
    directory,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL: cluster.url('postgres'),
      SERVICE_PLATFORM_IDENTITY_PEPPER: randomBytes(32).toString('base64url'),
      SERVICE_STATE_DIRECTORY: within('state'),
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_PRODUCT_ROOT: within('product'),
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_TLS_TERMINATED: 'true',
    },
  })
  const code = readFileSync(within('state/bootstrap/initial-owner.code'), 'utf8').trim()
  await svc(['login', '--url', server.management, '--code-env', 'CODE'], { CODE: code })
  const { projectId, environmentId } = JSON.parse(
    readFileSync(within('product/service.json'), 'utf8'),
  )
  await svc(['link', ...root, '--project-id', projectId, '--environment-id', environmentId])
  await svc(['release', '--remote', ...root, '--channel', 'production'])
  const made = await svc([
    'clients',
    'create',
    '--remote',
    ...root,
    '--name',
    'bench',
    '--kind',
    'confidential',
  ])
  const credential = [
    '--client',
    made.client.clientId,
    '--name',
    'bench',
    '--key-out',
    within('key'),
  ]
  await svc(['credentials', 'create', '--remote', ...root, ...credential])
  return {
    applicationPort: Number(new URL(server.application!).port),
    key: readFileSync(within('key'), 'utf8').trim(),
    managementPort: Number(new URL(server.management).port),
    accessToken: JSON.parse(readFileSync(within('config/credentials-v1.json'), 'utf8')).accessToken,
    databaseUrl: cluster.url('postgres'),
    dispose: async () => {
      await server.stop()
      await cluster.stop()
      rmSync(directory, { recursive: true, force: true })
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** What the commands of this file print, as far as it is read here. */
interface Printed {
  readonly client: { readonly clientId: string }
}

async function client(
  args: readonly string[],
  environment: Record<string, string>,
): Promise<Printed> {
  const run = spawnSync(join(DIST, 'svc'), [...args, '--json'], {
    env: environment,
    encoding: 'utf8',
  })
  assert(
    run.status === 0,
    `svc ${args.join(' ')} ended with ${run.status}: ${run.stdout}${run.stderr}`,
  )
  return JSON.parse(run.stdout) as Printed
}

export interface BareServer {
  readonly port: number
  stop(): void
}

/** A limit, in a process of its own on the runtime that this script runs on. */
export async function bareServer(
  script: 'bare.ts' | 'bare-select.ts',
  environment: { readonly ANSWER_BYTES: string; readonly DATABASE_URL?: string },
): Promise<BareServer> {
  const child = spawn(process.execPath, [join(import.meta.dirname, script)], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve) => {
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
  })
  return { port, stop: () => void child.kill() }
}
