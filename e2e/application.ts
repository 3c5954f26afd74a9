/** An application over HTTP, and the installation that serves it. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerProcess } from '../testing/servers/server-process.ts'
import { argv } from './argv.ts'
import {
  call,
  createInstallation,
  type Environment,
  type Executables,
  type Installation,
  productEnvironment,
} from './harness.ts'

export interface Application {
  readonly installation: Installation
  server: ServerProcess
  /** A confidential Application Key. */
  readonly key: string
  readonly clientId: string
  readonly releaseId: string
  svc(args: readonly string[], environment?: Record<string, string>): Promise<Json>
  /** Kills or stops the server and starts it again. */
  restart(how: 'kill' | 'stop'): Promise<void>
  start(): Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes.
export type Json = any

const SCOPES = 'action,mutation,query'

export const UNTYPED = '--no-typecheck'

/** Returns whether the client checks types, which the earliest ones do not. */
async function checksTypes({ svc }: Installation): Promise<boolean> {
  return (await svc(argv`release --help`)).stdout.includes(UNTYPED)
}

/**
 * Serves a Workspace: init, serve, login, link, release, one client and one credential. The server
 * gets `environment` in addition to the environment of the installation.
 */
export async function application(
  writeFunctions?: (workspace: string) => void,
  environment: Environment = {},
  executables?: Executables,
): Promise<Application> {
  const installation = await createInstallation(executables)
  const svc = async (args: readonly string[], environment: Record<string, string> = {}) => {
    const result = await installation.svc(argv`${args} --json`, environment)
    if (result.status !== 0) {
      throw new Error(`svc ${args.join(' ')}: ${result.status}\n${result.stdout}${result.stderr}`)
    }
    return JSON.parse(result.stdout)
  }
  const root = argv`--root ${installation.productRoot}`
  await svc(argv`init ${root} --workspace ${installation.workspace} --name Story`)
  writeFunctions?.(installation.workspace)
  const settings = { ...productEnvironment(installation), ...environment }
  const start = () => installation.start(settings)
  let server = await start()
  const code = readFileSync(installation.codeFile, 'utf8').trim()
  await svc(argv`login --url ${server.management} --code-env CODE`, { CODE: code })
  const { projectId, environmentId } = JSON.parse(
    readFileSync(join(installation.productRoot, 'service.json'), 'utf8'),
  )
  await svc(argv`link ${root} --project-id ${projectId} --environment-id ${environmentId}`)
  // The Functions of tests break rules that types state, since the server must hold them too.
  const checks = executables === undefined || (await checksTypes(installation))
  const release = argv`release --remote ${root} --channel production`
  const released = await svc(checks ? argv`${release} ${UNTYPED}` : release)
  const { key, clientId } = await createKey({ svc, installation }, { scopes: SCOPES })
  return {
    installation,
    get server() {
      return server
    },
    set server(next) {
      server = next
    },
    key,
    clientId,
    releaseId: released.releaseId,
    svc,
    async restart(how) {
      if (how === 'kill') server.kill()
      else await server.stop()
      await server.ended
      server = await start()
    },
    async start() {
      server = await start()
    },
  }
}

export interface KeyOptions {
  readonly kind?: 'confidential' | 'development' | 'public'
  /** Scopes, separated by commas. Default: all that the kind may have. */
  readonly scopes?: string
  /** Calls per second. */
  readonly rateLimit?: number
}

/** Creates an Application Client with one key. */
export async function createKey(
  { svc, installation }: Pick<Application, 'svc' | 'installation'>,
  { kind = 'confidential', scopes, rateLimit }: KeyOptions,
): Promise<{ readonly key: string; readonly clientId: string }> {
  const named = argv`--remote --root ${installation.productRoot} --name ${kind}`
  if (scopes !== undefined) named.push(...argv`--scopes ${scopes}`)
  const { client } = await svc(argv`clients create ${named} --kind ${kind}`)
  const create = argv`credentials create ${named} --client ${client.clientId}`
  if (rateLimit !== undefined) create.push(...argv`--rate-limit ${rateLimit}`)
  const { key } = await svc(create)
  return { key, clientId: client.clientId }
}

export const int64 = (value: bigint | number) => ({ type: 'int64', value: String(value) })
export const string = (value: string) => ({ type: 'string', value })
export const id = (value: string) => ({ type: 'typed_id', value })
export const object = (entries: Record<string, Json>) => ({
  type: 'object',
  value: Object.keys(entries)
    .sort()
    .map((key) => ({ key, value: entries[key] })),
})

/** A reply with a body of any shape. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

/** Returns the entries of a tagged object by key. */
export function fields(tagged: Json): Record<string, Json> {
  return Object.fromEntries(tagged.value.map(({ key, value }: Json) => [key, value]))
}

export interface Invocation {
  readonly function: string
  readonly arguments?: Record<string, Json>
  readonly target?: string
  readonly operationId?: string
  readonly key?: string | null
  readonly headers?: Record<string, string>
}

export function query(app: Application, invocation: Invocation): Promise<Reply> {
  return invoke(app, 'query', invocation)
}

export function mutation(app: Application, invocation: Invocation): Promise<Reply> {
  return invoke(app, 'mutation', { operationId: operationId(), ...invocation })
}

export function action(app: Application, invocation: Invocation): Promise<Reply> {
  return invoke(app, 'action', invocation)
}

function invoke(app: Application, kind: string, invocation: Invocation): Promise<Reply> {
  const { target = 'channel:production', key = app.key, headers = {} } = invocation
  const body = {
    version: 1,
    target,
    function: invocation.function,
    arguments: object(invocation.arguments ?? {}),
    ...(invocation.operationId !== undefined && { operationId: invocation.operationId }),
  }
  const keyHeader = key === null ? {} : { 'x-service-key': key }
  return send(app.server.application!, 'POST', `/v1/${kind}`, {
    headers: { ...keyHeader, ...headers },
    body,
  })
}

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Creates a canonical Operation ID. Its time need not be the current one. */
export function operationId(): string {
  const random = [...randomBytes(25)].map((byte) => ALPHABET[byte % 32])
  return `opn_0${random.join('')}`
}

export function send(...request: Parameters<typeof call>): Promise<Reply> {
  return call(...request) as Promise<Reply>
}
