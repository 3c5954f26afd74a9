/** An application whose server ends TLS itself: Workspace, release, calls and connections. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { type ClientOptions, WebSocket } from 'ws'
import { realtimeProtocol } from '../../src/wire/realtime.ts'
import { argv } from '../argv.ts'
import { type Environment, type Installation, productEnvironment } from '../harness.ts'

const FUNCTIONS = `import { query, v } from 'svc'
export const hello = query({
  clients: ['confidential'], returns: v.string(), handler: () => 'hello',
})
`

export interface TlsApplicationOptions {
  /** Number of application processes. */
  readonly processes: string
  /** Settings of the server beside those of every Product. */
  readonly settings: Environment
  /** Variables of every command of the client. */
  readonly client?: Environment
}

export class TlsApplication {
  readonly installation: Installation
  readonly settings: Environment
  readonly applicationPort: number
  readonly #client: Environment

  private constructor(installation: Installation, options: TlsApplicationOptions) {
    const { SERVICE_APPLICATION_TLS_TERMINATED: _, ...product } = productEnvironment(installation)
    const { processes, settings, client = {} } = options
    this.installation = installation
    this.settings = { ...product, SERVICE_APPLICATION_PROCESSES: processes, ...settings }
    this.applicationPort = Number(installation.applicationListen.split(':')[1])
    this.#client = client
  }

  /** Makes the root and the Workspace. The server is not started. */
  static async init(
    installation: Installation,
    options: TlsApplicationOptions,
  ): Promise<TlsApplication> {
    const application = new TlsApplication(installation, options)
    await application.svc(
      argv`init ${application.#root} --workspace ${installation.workspace} --name Tls`,
    )
    writeFileSync(join(installation.workspace, 'functions/greeting.ts'), FUNCTIONS)
    return application
  }

  get #root(): readonly string[] {
    return argv`--root ${this.installation.productRoot}`
  }

  /** Returns the result of a command of the client. Throws what it printed if it failed. */
  async svc(args: readonly string[], extra: Environment = {}) {
    const environment = { ...this.#client, ...extra }
    const result = await this.installation.svc(argv`${args} --json`, environment)
    if (result.status !== 0) throw new Error(`${args.join(' ')}\n${result.stdout}${result.stderr}`)
    return JSON.parse(result.stdout)
  }

  /** Releases the Function at a server that runs, and returns a key that calls it. */
  async release(url: string): Promise<string> {
    const { installation } = this
    const root = this.#root
    const code = readFileSync(installation.codeFile, 'utf8').trim()
    await this.svc(argv`login --url ${url} --code-env CODE`, { CODE: code })
    const { projectId, environmentId } = JSON.parse(
      readFileSync(join(installation.productRoot, 'service.json'), 'utf8'),
    )
    await this.svc(argv`link ${root} --project-id ${projectId} --environment-id ${environmentId}`)
    await this.svc(argv`release --remote ${root} --channel production --no-typecheck`)
    const named = argv`--remote ${root} --name caller`
    const { client } = await this.svc(
      argv`clients create ${named} --kind confidential --scopes query,realtime`,
    )
    return (await this.svc(argv`credentials create ${named} --client ${client.clientId}`)).key
  }
}

/** The headers of a call with the key. */
export function callHeaders(key: string): Record<string, string> {
  return { 'x-service-key': key, 'x-service-target': 'channel:production' }
}

/** Opens a connection, and resolves once its handshake is complete. */
export async function handshake(options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect(options)
  await once(socket, 'secureConnect')
  return socket
}

/** Opens an authenticated connection to an origin such as `wss://localhost:1`, which stays open. */
export async function openRealtime(
  origin: string,
  key: string,
  options: ClientOptions,
): Promise<WebSocket> {
  const socket = new WebSocket(`${origin}/v1/realtime`, realtimeProtocol(1), options)
  await once(socket, 'open')
  const answer = await ask(socket, { type: 'authenticate', applicationKey: key })
  if (answer.type !== 'authenticated') throw new Error(JSON.stringify(answer))
  return socket
}

/** Sends a message, and returns the next one that arrives. */
export async function ask(
  socket: WebSocket,
  message: object,
): Promise<{ readonly type: string; readonly [name: string]: unknown }> {
  const answered = once(socket, 'message')
  socket.send(JSON.stringify({ version: 1, ...message }))
  return JSON.parse(String((await answered)[0]))
}
