/**
 * Proves that everything that was answered is visible everywhere: calls over many connections,
 * which two processes have accepted, run while counters, Releases, keys, variables and the
 * lifecycle of the Environment change.
 */
import {
  type Application,
  application,
  createKey,
  int64,
  type Json,
  operationId,
} from '../application.ts'
import { argv } from '../argv.ts'
import { Management } from '../lifecycle/management.ts'
import { STORES } from '../serializability/stores.ts'
import type { Answer } from './connections.ts'
import { Counters } from './counters.ts'
import { connectToAll, type OwnedConnection, processesOf } from './processes.ts'
import { writeRelease } from './workspace.ts'

export interface VisibilityOptions {
  readonly store: keyof typeof STORES
  readonly seed: number
  readonly rounds: number
}

export interface Visibility {
  /** Answers that a call missed although they were given before it was sent. */
  readonly findings: readonly string[]
  /** Answered writes, and reads of what another process had answered. */
  readonly writes: number
  readonly crossReads: number
  readonly crossStates: number
  /** Calls that a control change was checked with. */
  readonly checks: number
}

const PROCESSES = 2
/** Connections to each process that run calls all the time, and that check control changes. */
const LOADED = 8
const CHECKED = 4
/** Answered writes before and after each control change. */
const WRITES_BETWEEN = 25
const RATE = 100_000
const ENVIRONMENT = { SERVICE_APPLICATION_PROCESSES: String(PROCESSES) }

export async function checkVisibility(options: VisibilityOptions): Promise<Visibility> {
  const store = await STORES[options.store]()
  let app: Application | null = null
  try {
    const environment = { ...ENVIRONMENT, ...store.environment }
    app = await application((workspace) => writeRelease(workspace, 1), environment)
    return await new Campaign(app, options).run()
  } finally {
    await app?.installation.dispose()
    await store.dispose()
  }
}

class Campaign {
  readonly #app: Application
  readonly #options: VisibilityOptions
  readonly #management: Management
  readonly #findings: string[] = []
  #checked: readonly OwnedConnection[] = []
  #key = ''
  #checks = 0

  constructor(app: Application, options: VisibilityOptions) {
    this.#app = app
    this.#options = options
    this.#management = new Management(app)
  }

  async run(): Promise<Visibility> {
    const app = this.#app
    const { workspace, productRoot } = app.installation
    const releases = [app.releaseId]
    writeRelease(workspace, 2)
    const release = argv`release --no-typecheck --remote --root ${productRoot}`
    releases.push((await app.svc(release)).releaseId)
    this.#key = (await createKey(app, { rateLimit: RATE })).key
    this.#checked = await connectToAll(app, CHECKED)
    const counters = new Counters({
      origin: app.server.application!,
      pids: processesOf(app).applications,
      key: this.#key,
      seed: this.#options.seed,
      connections: await connectToAll(app, LOADED),
      findings: this.#findings,
    })
    for (let round = 1; round <= this.#options.rounds; round++) {
      await counters.during(async () => {
        const between = () => counters.untilWritten(WRITES_BETWEEN)
        await between()
        await this.#promote(releases[round % 2]!, releases)
        await between()
        await this.#serve(releases[round % 2]!, releases)
        await between()
        await this.#set(`value ${round}`)
        await between()
        await this.#issueAndRevoke()
        await between()
      })
      await this.#archiveAndRestore()
    }
    counters.close()
    for (const { connection } of this.#checked) connection.close()
    return { ...counters.counts, checks: this.#checks, findings: this.#findings }
  }

  async #promote(releaseId: string, releases: readonly string[]): Promise<void> {
    const { serving } = await this.#change('PUT', '/channels/production', { releaseId })
    if (serving !== 'converged') {
      while ((await this.#change('GET', '')).observed.serving !== 'serving') await Bun.sleep(1)
    }
    const expected = int64(releases.indexOf(releaseId) + 1)
    await this.#expectAll('a promotion', 'seen.release', (answer) => isResult(answer, expected))
  }

  /** Lets environment:default serve the Release alone. */
  async #serve(releaseId: string, releases: readonly string[]): Promise<void> {
    const before = await this.#change('GET', '/serving-policy')
    const { desired } = await this.#change('PUT', '/serving-policy', {
      expectedRevision: Number(before.desired.revision),
      mode: 'atomic',
      releases: [{ releaseId, weight: 10_000 }],
      changedAtMicros: nowMicros(),
    })
    const observed = async () => (await this.#change('GET', '/serving-policy')).observed.revision
    while ((await observed()) !== desired.revision) await Bun.sleep(1)
    const expected = int64(releases.indexOf(releaseId) + 1)
    await this.#expectAll('a policy', 'seen.release', (answer) => isResult(answer, expected), {
      target: 'environment:default',
    })
  }

  async #set(value: string): Promise<void> {
    const { revision } = await this.#change('GET', '/configuration')
    await this.#change('PUT', '/configuration/SETTING', {
      expectedRevision: Number(revision),
      kind: 'variable',
      value,
      changedAtMicros: nowMicros(),
    })
    const expected = { type: 'string', value }
    const isSeen = (answer: Answer) => isResult(answer, expected)
    await this.#expectAll('a variable', 'seen.setting', isSeen)
    // Now from the cache of each process.
    await this.#expectAll('a variable', 'seen.setting', isSeen)
  }

  async #issueAndRevoke(): Promise<void> {
    const { key, clientId } = await createKey(this.#app, { scopes: 'query' })
    const isAccepted = ({ status }: Answer) => status === 200
    await this.#expectAll('a new key', 'seen.release', isAccepted, { key })
    const path = `/application-clients/${clientId}/credentials`
    const [{ credentialId }] = (await this.#change('GET', path)).credentials
    await this.#change('POST', `${path}/${credentialId}/revoke`)
    const isRejected = ({ status }: Answer) => status === 401
    await this.#expectAll('a revocation', 'seen.release', isRejected, { key })
  }

  async #archiveAndRestore(): Promise<void> {
    const isRejected = ({ status }: Answer) => status === 503
    await this.#changeLifecycle('archive')
    await this.#expectAll('an archive', 'seen.release', isRejected)
    await this.#changeLifecycle('restore')
    while ((await this.#change('GET', '')).observed.serving !== 'serving') await Bun.sleep(1)
    await this.#expectAll('a restore', 'seen.release', ({ status }) => status === 200)
  }

  async #changeLifecycle(verb: 'archive' | 'restore'): Promise<void> {
    const { desired } = await this.#change('GET', '')
    await this.#change('POST', `/${verb}`, {
      expectedRevision: Number(desired.revision),
      changedAtMicros: nowMicros(),
    })
  }

  /** Sends a management request. Throws if it fails. */
  async #change(method: string, path: string, body?: Json): Promise<Json> {
    const operation = method === 'GET' ? null : operationId()
    const message = { operationId: operation, ...(body !== undefined && { body }) }
    const { reply } = await this.#management.attempt(method, path, message)
    if (reply === null || reply.status >= 300) throw new Error(`${method} ${path}: ${reply?.text}`)
    return JSON.parse(reply.text)
  }

  /** Calls over all connections at once. */
  async #expectAll(
    what: string,
    name: string,
    isExpected: (answer: Answer) => boolean,
    more: { readonly key?: string; readonly target?: string } = {},
  ): Promise<void> {
    const called = { kind: 'query', function: name, key: this.#key, ...more } as const
    const answers = this.#checked.map(async ({ connection, pid }) => {
      const answer = await connection.call(called)
      this.#checks += 1
      if (isExpected(answer)) return
      const { status, body } = answer
      const seen = JSON.stringify(body.result ?? body.error)
      this.#findings.push(`the process ${pid} missed ${what}: ${status} ${seen}`)
    })
    await Promise.all(answers)
  }
}

function isResult({ status, body }: Answer, expected: Json): boolean {
  return status === 200 && JSON.stringify(body.result) === JSON.stringify(expected)
}

function nowMicros(): string {
  return `${Date.now()}000`
}
