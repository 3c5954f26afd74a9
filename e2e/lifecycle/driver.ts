/**
 * A run: 32 clients change the Channels, the serving policy, the configuration and the Environment
 * at random while the server is killed, and ask until each operation is settled.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Application, Json } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import {
  type Asked,
  type Attempt,
  type CHANNELS,
  type Change,
  type Evidence,
  RESOURCES,
  type Resource,
  type Seen,
} from './changes.ts'
import { Management } from './management.ts'
import { bodyOf } from './outcomes.ts'
import { releasedApplication } from './releases.ts'
import { draw, requestOf } from './requests.ts'
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
  readonly seconds: number
  readonly secondsBetweenKills: number
}

export interface Run {
  readonly evidence: Evidence
  readonly kills: number
}

const CLIENTS = 32
/** Longer than a server needs to come back. */
const PATIENCE_MILLIS = 60_000
/** Of a client, between two of its changes. */
const PAUSE_MILLIS = 150
/** Between two requests about an operation that is not settled. */
const RETRY_MILLIS = 20
const READ_SHARE = 0.15
/** Of the operations: those that are asked for twice at once, and again when they are answered. */
const TWICE_SHARE = 0.05
const AGAIN_SHARE = 0.15
/** Of the operations: those whose first request is abandoned, and how soon at most. */
const ABANDONED_SHARE = 0.1
const ABANDONED_MILLIS = 5
/** Of the operations that got no answer: those that are looked up before they are repeated. */
const LOOK_SHARE = 0.5

export async function runLifecycle(options: RunOptions): Promise<Run> {
  const { app, releases, compatibility } = await releasedApplication()
  try {
    return await new Driver(app, { releases, compatibility, ...options }).run()
  } finally {
    await app.of.dispose()
  }
}

interface DriverOptions extends RunOptions {
  readonly releases: readonly string[]
  readonly compatibility: Compatibility
}

interface Asking extends Asked {
  readonly attempts: Attempt[]
  readonly lookups: Attempt[]
}

class Driver {
  readonly #app: Application
  readonly #options: DriverOptions
  readonly #management: Management
  readonly #asked: Asking[] = []
  readonly #seen: Seen[] = []
  readonly #newest: Record<Resource, { revision: number; stamp: string }>
  #endsAt = 0

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
    this.#endsAt = performance.now() + this.#options.seconds * 1_000
    const clients = Array.from({ length: CLIENTS }, (_, client) => this.#client(client))
    const [kills] = await Promise.all([this.#kill(), ...clients])
    // What a last crash left is what counts.
    await this.#app.restart('kill')
    await this.#askAllAgain()
    await this.#readAll()
    const audit = await this.#deliveredAudit(initial)
    const configurationHistory = await this.#management.configurationHistory()
    const evidence = { initial, asked: this.#asked, seen: this.#seen, audit, configurationHistory }
    return { evidence, kills: kills + 1 }
  }

  /** Answers how often it did. */
  async #kill(): Promise<number> {
    const between = this.#options.secondsBetweenKills * 1_000
    let kills = 0
    for (let at = performance.now() + between; at < this.#endsAt; at += between) {
      await delay(at - performance.now())
      await this.#app.restart('kill')
      kills += 1
    }
    return kills
  }

  async #client(client: number): Promise<void> {
    const random = new SeededRandom(this.#options.seed, client)
    while (performance.now() < this.#endsAt) {
      if (random.chance(READ_SHARE)) await this.#read(random.pick(RESOURCES))
      else await this.#perform(draw(random, this.#known()), random)
      if (random.chance(AGAIN_SHARE)) await this.#askAgain(random)
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
    const asking: Asking = { change, attempts: [], lookups: [] }
    this.#asked.push(asking)
    const isTwice = change.operationId !== null && random.chance(TWICE_SHARE)
    const twin = isTwice ? this.#attempt(asking) : null
    if (change.operationId !== null && random.chance(ABANDONED_SHARE)) {
      await this.#attempt(asking, AbortSignal.timeout(random.below(ABANDONED_MILLIS)))
    }
    const deadline = performance.now() + PATIENCE_MILLIS
    while ((await this.#attempt(asking)).reply === null) {
      if (change.operationId === null) {
        // Whoever asked again might bind the Channel a second time: its state is what counts.
        await this.#readUntilShown(change.resource)
        break
      }
      if (performance.now() > deadline) throw new Error(`no answer: ${JSON.stringify(asking)}`)
      await delay(RETRY_MILLIS)
      if (random.chance(LOOK_SHARE)) await this.#look(asking)
    }
    await twin
  }

  async #askAgain(random: SeededRandom): Promise<void> {
    const asking = random.pick(this.#asked.slice(-CLIENTS * 4))
    if (asking === undefined || asking.change.operationId === null) return
    await this.#attempt(asking)
    await this.#look(asking)
  }

  async #attempt(asking: Asking, signal: AbortSignal | null = null): Promise<Attempt> {
    const { change, attempts } = asking
    const { operationId } = change
    const { method, path, body } = requestOf(change)
    const attempt = await this.#management.attempt(method, path, { operationId, body, signal })
    attempts.push(attempt)
    const { reply } = attempt
    if (reply !== null && reply.status < 300) this.#learn(change, reply.text)
    return attempt
  }

  #learn(change: Change, text: string): void {
    const body = bodyOf(text)
    const revision = Number(body.operation?.revision ?? body.revision)
    const stamp = 'releaseId' in change ? change.releaseId : String(revision)
    this.#know(change.resource, { revision, stamp })
  }

  #know(resource: Resource, found: { readonly revision: number; readonly stamp: string }): void {
    if (found.revision > this.#newest[resource].revision) this.#newest[resource] = { ...found }
  }

  /** A configuration's operation has no route of its own. */
  async #look({ change, lookups }: Asking): Promise<void> {
    const { resource, operationId } = change
    if (resource !== 'serving_policy' && resource !== 'environment') return
    const path = `/${resource.replace('_', '-')}-operations/${operationId}`
    lookups.push(await this.#management.attempt('GET', path))
  }

  async #read(resource: Resource): Promise<boolean> {
    const found = await this.#management.read(resource)
    for (const seen of found) {
      const { revision, view } = seen
      const stamp = seen.resource.startsWith('channel:') ? view.releaseId : String(revision)
      this.#know(seen.resource, { revision, stamp })
      this.#seen.push(seen)
    }
    return found.length > 0
  }

  async #readUntilShown(resource: Resource): Promise<void> {
    const deadline = performance.now() + PATIENCE_MILLIS
    while (!(await this.#read(resource))) {
      if (performance.now() > deadline) throw new Error(`${resource} cannot be read`)
      await delay(RETRY_MILLIS)
    }
  }

  async #readAll(): Promise<void> {
    for (const resource of RESOURCES) await this.#readUntilShown(resource)
  }

  /** What the first reads showed. */
  #initial(): Evidence['initial'] {
    const { compatibility } = this.#options
    const { environmentId } = this.#management
    const first = (resource: Resource, state: (view: Json) => State) => {
      const { revision, view } = this.#seen.find((seen) => seen.resource === resource)!
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

  /** Every operation of the run, whatever it was answered. */
  async #askAllAgain(): Promise<void> {
    const operations = this.#asked.filter(({ change }) => change.operationId !== null)
    const client = async (): Promise<void> => {
      for (let asking = operations.pop(); asking !== undefined; asking = operations.pop()) {
        await this.#attempt(asking)
        await this.#look(asking)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
  }

  /** Without what came before the run. The trail has each record soon after its change. */
  async #deliveredAudit(initial: Evidence['initial']): Promise<Evidence['audit']> {
    const deadline = performance.now() + PATIENCE_MILLIS
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
