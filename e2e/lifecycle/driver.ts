/**
 * Runs 32 clients that change the Channels, the serving policy, the configuration and the
 * Environment at random while the server is killed, and repeat each operation until its outcome is
 * known.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Application, Json } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import {
  type Attempt,
  type CHANNELS,
  type Change,
  type Evidence,
  type Observation,
  RESOURCES,
  type Resource,
  type TrackedChange,
} from './changes.ts'
import { Management } from './management.ts'
import { parseBody } from './outcomes.ts'
import { releasedApplication } from './releases.ts'
import { draw, toRequest } from './requests.ts'
import {
  ChannelState,
  type Compatibility,
  ConfigurationState,
  EnvironmentState,
  PolicyState,
  type State,
} from './states.ts'

export interface RunOptions {
  readonly seed: number
  /** Number of applied changes after which the run ends, however long they take. */
  readonly changes: number
  /** Number of applied changes from one kill to the next. */
  readonly changesBetweenKills: number
}

export interface Run {
  readonly evidence: Evidence
  readonly kills: number
}

const CLIENTS = 32
/** Time limit for the outcome of a request: a server restarts faster, so only a hang exceeds it. */
const TIMEOUT_MILLIS = 300_000
/** Longest pause of a client between two of its changes. */
const PAUSE_MILLIS = 150
/** Pause between two looks at the number of changes. */
const COUNT_MILLIS = 5
/** Pause between two requests about an operation whose outcome is unknown. */
const RETRY_MILLIS = 20
const READ_SHARE = 0.15
/** Shares of the operations that are sent twice at once, and again after their reply. */
const TWICE_SHARE = 0.05
const AGAIN_SHARE = 0.15
/** Share of the operations whose first request is aborted, and the longest time until then. */
const ABANDONED_SHARE = 0.1
const ABANDONED_MILLIS = 5
/** Share of the operations without a reply whose record is read before they are repeated. */
const LOOK_SHARE = 0.5

export async function runLifecycle(options: RunOptions): Promise<Run> {
  const { app, releases, compatibility } = await releasedApplication()
  try {
    return await new Driver(app, { releases, compatibility, ...options }).run()
  } finally {
    await app.installation.dispose()
  }
}

interface DriverOptions extends RunOptions {
  readonly releases: readonly string[]
  readonly compatibility: Compatibility
}

interface OpenChange extends TrackedChange {
  readonly attempts: Attempt[]
  readonly lookups: Attempt[]
}

class Driver {
  readonly #app: Application
  readonly #options: DriverOptions
  readonly #management: Management
  readonly #tracked: OpenChange[] = []
  readonly #observed: Observation[] = []
  readonly #newest: Record<Resource, { revision: number; stamp: string }>
  #applied = 0
  #hasEnded = false

  constructor(app: Application, options: DriverOptions) {
    this.#app = app
    this.#options = options
    this.#management = new Management(app)
    const unknown = () => ({ revision: -1, stamp: '' })
    this.#newest = {
      'channel:production': unknown(),
      'channel:staging': unknown(),
      serving_policy: unknown(),
      configuration: unknown(),
      environment: unknown(),
    }
  }

  async run(): Promise<Run> {
    await this.#readAll()
    const initial = this.#initial()
    const clients = Array.from({ length: CLIENTS }, (_, client) => this.#client(client))
    const ended = Promise.all(clients).finally(() => {
      this.#hasEnded = true
    })
    const [kills] = await Promise.all([this.#kill(), ended])
    // The state after a last crash is the one to check.
    await this.#app.restart('kill')
    await this.#repeatAll()
    await this.#readAll()
    const audit = await this.#deliveredAudit(initial)
    const configurationHistory = await this.#management.configurationHistory()
    const evidence = {
      initial,
      tracked: this.#tracked,
      observed: this.#observed,
      audit,
      configurationHistory,
    }
    return { evidence, kills: kills + 1 }
  }

  /** Kills the server again and again. Returns the number of kills. */
  async #kill(): Promise<number> {
    const { changes, changesBetweenKills } = this.#options
    let kills = 0
    for (let next = changesBetweenKills; next < changes; next += changesBetweenKills) {
      while (this.#applied < next && !this.#hasEnded) await delay(COUNT_MILLIS)
      if (this.#hasEnded) break
      await this.#app.restart('kill')
      kills += 1
    }
    return kills
  }

  async #client(client: number): Promise<void> {
    const random = new SeededRandom(this.#options.seed, client)
    while (this.#applied < this.#options.changes) {
      if (random.chance(READ_SHARE)) await this.#read(random.pick(RESOURCES))
      else await this.#perform(draw(random, this.#known()), random)
      if (random.chance(AGAIN_SHARE)) await this.#repeatOne(random)
      await delay(random.below(PAUSE_MILLIS))
    }
  }

  #known() {
    const stamps = Object.fromEntries(
      RESOURCES.map((resource) => [resource, this.#newest[resource].stamp]),
    ) as Record<Resource, string>
    return { releases: this.#options.releases, stamps }
  }

  async #perform(change: Change, random: SeededRandom): Promise<void> {
    const open: OpenChange = { change, attempts: [], lookups: [] }
    this.#tracked.push(open)
    const isTwice = change.operationId !== null && random.chance(TWICE_SHARE)
    const twin = isTwice ? this.#attempt(open) : null
    if (change.operationId !== null && random.chance(ABANDONED_SHARE)) {
      await this.#attempt(open, AbortSignal.timeout(random.below(ABANDONED_MILLIS)))
    }
    const deadline = performance.now() + TIMEOUT_MILLIS
    while ((await this.#attempt(open)).reply === null) {
      if (change.operationId === null) {
        // A repeat might bind the Channel a second time, so its state is read instead.
        await this.#readUntilShown(change.resource)
        break
      }
      if (performance.now() > deadline) throw new Error(`no result: ${JSON.stringify(open)}`)
      await delay(RETRY_MILLIS)
      if (random.chance(LOOK_SHARE)) await this.#look(open)
    }
    await twin
    if (open.attempts.some(({ reply }) => reply !== null && reply.status < 300)) this.#applied += 1
  }

  async #repeatOne(random: SeededRandom): Promise<void> {
    const open = random.pick(this.#tracked.slice(-CLIENTS * 4))
    if (open === undefined || open.change.operationId === null) return
    await this.#attempt(open)
    await this.#look(open)
  }

  async #attempt(open: OpenChange, signal: AbortSignal | null = null): Promise<Attempt> {
    const { change, attempts } = open
    const { operationId } = change
    const { method, path, body } = toRequest(change)
    const attempt = await this.#management.attempt(method, path, { operationId, body, signal })
    attempts.push(attempt)
    const { reply } = attempt
    if (reply !== null && reply.status < 300) this.#learn(change, reply.text)
    return attempt
  }

  #learn(change: Change, text: string): void {
    const body = parseBody(text)
    const revision = Number(body.operation?.revision ?? body.revision)
    const stamp = 'releaseId' in change ? change.releaseId : String(revision)
    this.#know(change.resource, { revision, stamp })
  }

  #know(resource: Resource, found: { readonly revision: number; readonly stamp: string }): void {
    if (found.revision > this.#newest[resource].revision) this.#newest[resource] = { ...found }
  }

  /** Reads the record of an operation. Those of the configuration have no route. */
  async #look({ change, lookups }: OpenChange): Promise<void> {
    const { resource, operationId } = change
    if (resource !== 'serving_policy' && resource !== 'environment') return
    const path = `/${resource.replace('_', '-')}-operations/${operationId}`
    lookups.push(await this.#management.attempt('GET', path))
  }

  async #read(resource: Resource): Promise<boolean> {
    const found = await this.#management.read(resource)
    for (const observed of found) {
      const { revision, view } = observed
      const stamp = observed.resource.startsWith('channel:') ? view.releaseId : String(revision)
      this.#know(observed.resource, { revision, stamp })
      this.#observed.push(observed)
    }
    return found.length > 0
  }

  async #readUntilShown(resource: Resource): Promise<void> {
    const deadline = performance.now() + TIMEOUT_MILLIS
    while (!(await this.#read(resource))) {
      if (performance.now() > deadline) throw new Error(`${resource} cannot be read`)
      await delay(RETRY_MILLIS)
    }
  }

  async #readAll(): Promise<void> {
    for (const resource of RESOURCES) await this.#readUntilShown(resource)
  }

  /** Returns the states in the first reads. */
  #initial(): Evidence['initial'] {
    const { compatibility } = this.#options
    const { environmentId } = this.#management
    const first = (resource: Resource, state: (view: Json) => State) => {
      const { revision, view } = this.#observed.find((observed) => observed.resource === resource)!
      return { revision, state: state(view) }
    }
    const channel = (name: (typeof CHANNELS)[number]) =>
      first(`channel:${name}`, ({ releaseId }) => {
        const bound = releaseId === 'empty' ? [] : [releaseId]
        return new ChannelState(name, compatibility, bound)
      })
    return {
      'channel:production': channel('production'),
      'channel:staging': channel('staging'),
      serving_policy: first('serving_policy', () => new PolicyState(environmentId, compatibility)),
      configuration: first('configuration', () => new ConfigurationState()),
      environment: first('environment', (view) => new EnvironmentState(environmentId, view)),
    }
  }

  /** Repeats every operation of the run, also those with a reply. */
  async #repeatAll(): Promise<void> {
    const operations = this.#tracked.filter(({ change }) => change.operationId !== null)
    const client = async (): Promise<void> => {
      for (let open = operations.pop(); open !== undefined; open = operations.pop()) {
        await this.#attempt(open)
        await this.#look(open)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
  }

  /**
   * Returns the audit since the start of the run. Records are delivered soon after their change.
   */
  async #deliveredAudit(initial: Evidence['initial']): Promise<Evidence['audit']> {
    const deadline = performance.now() + TIMEOUT_MILLIS
    for (;;) {
      const audit = await this.#management.audit()
      const isShort = RESOURCES.some(
        (resource) => audit[resource].length < this.#newest[resource].revision,
      )
      if (!isShort || performance.now() > deadline) {
        for (const resource of RESOURCES) audit[resource].splice(0, initial[resource].revision)
        return audit
      }
      await delay(1_000)
    }
  }
}
