/** Runs the Mutations of the workload while subscribers watch and faults are injected. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Promoter } from '../../bench/promotions/promoter.ts'
import {
  type Application,
  application,
  createKey,
  type Json,
  mutation,
  operationId,
  type Reply,
} from '../application.ts'
import { argv } from '../argv.ts'
import { type FaultCounts, Faults } from '../serializability/faults.ts'
import { SeededRandom } from '../serializability/random.ts'
import { STORES } from '../serializability/stores.ts'
import type { Commit, LiveHistory } from './history.ts'
import { changeArguments } from './requests.ts'
import { type RunState, Subscriber, type SubscriberCounts } from './subscriber.ts'
import { CELLS, plannedMutation } from './workload.ts'
import { functionsOf, SCHEMA } from './workspace.ts'

export interface RunOptions {
  readonly store: keyof typeof STORES
  readonly seed: number
  readonly subscribers: number
  readonly mutations: number
  readonly promotions: number
  readonly faults: FaultCounts
}

export interface Run {
  readonly history: LiveHistory
  readonly counts: SubscriberCounts
  readonly faults: FaultCounts
  readonly promotions: number
  /** Observations that no client may make. */
  readonly failures: readonly string[]
  readonly millis: number
}

const WRITERS = 8
/** One of this number of subscribers reads slowly. */
const SLOW_EVERY = 50
const PAUSE_MILLIS_MAX = 40
/** Time limit for the outcome of a request: a server, store and runner restart faster. */
const OUTCOME_MILLIS_MAX = 240_000
/** Time limit for a reply: the deadline of an invocation and time to spare. */
const REPLY_MILLIS_MAX = 15_000
const RETRY_MILLIS = 20
/** Codes after which the outcome is unknown and the same request is repeated. */
const OUTCOME_UNKNOWN = ['RESULT_UNCERTAIN', 'DEADLINE_EXCEEDED']

export async function runWorkload(options: RunOptions): Promise<Run> {
  const store = await STORES[options.store]()
  const app = await application((workspace) => {
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
    for (const file of ['channels', 'messages']) {
      writeFileSync(join(workspace, `functions/${file}.ts`), '')
    }
    writeFileSync(join(workspace, 'functions/live.ts'), functionsOf(1))
  }, store.environment).catch(async (error) => {
    await store.dispose()
    throw error
  })
  try {
    const cells = await prepare(app)
    const { seed, mutations: transactions, faults: counts } = options
    const probe = { function: 'live.change', arguments: changeArguments(NO_CHANGES, cells) }
    const faults = new Faults(app, store, { seed, transactions, counts, probe })
    const { key } = await createKey(app, {})
    const driver = new Driver(app, { cells, faults, options, key })
    return await driver.run(await secondRelease(app))
  } finally {
    await app.installation.dispose()
    await store.dispose()
  }
}

const NO_CHANGES = { changes: [], aborts: false }

/** Creates the cells and returns their IDs. */
async function prepare(app: Application): Promise<string[]> {
  const input = { cells: { type: 'int64', value: String(CELLS) } }
  const { status, body } = await mutation(app, { function: 'live.prepare', arguments: input })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body.result.value.map(({ value }: Json) => value)
}

async function secondRelease({ svc, installation }: Application): Promise<string> {
  writeFileSync(join(installation.workspace, 'functions/live.ts'), functionsOf(2))
  const release = argv`release --no-typecheck --remote --root ${installation.productRoot}`
  return (await svc(release)).releaseId
}

/** Returns what promotes Releases of the application, with a token that lives ten minutes. */
function promoterOf({ installation, server }: Application): Promoter {
  const read = (path: string) =>
    JSON.parse(readFileSync(join(installation.directory, path), 'utf8'))
  const { projectId, environmentId } = read('product/service.json')
  const authorization = `Bearer ${read('config/credentials-v1.json').accessToken}`
  return new Promoter({
    management: { port: Number(new URL(server.management).port), headers: { authorization } },
    base: `/v1/projects/${projectId}/environments/${environmentId}`,
  })
}

interface Prepared {
  readonly cells: readonly string[]
  readonly faults: Faults
  readonly options: RunOptions
  readonly key: string
}

class Driver {
  readonly #app: Application
  readonly #prepared: Prepared
  readonly #state: RunState
  readonly #commits: Commit[] = []
  readonly #releases: string[]
  readonly #promoter: Promoter
  #promotions = 0
  /** Promotions run one after the other. */
  #promoting: Promise<void> = Promise.resolve()
  #next = 0

  constructor(app: Application, prepared: Prepared) {
    this.#app = app
    this.#prepared = prepared
    this.#releases = [app.releaseId]
    this.#promoter = promoterOf(app)
    const { key, cells } = prepared
    this.#state = {
      key,
      cells,
      failures: [],
      known: 0,
      isDone: false,
      origin: () => app.server.application!,
      releaseNumber: (releaseId) => this.#releases.indexOf(releaseId) + 1,
    }
  }

  async run(secondRelease: string): Promise<Run> {
    this.#releases.push(secondRelease)
    const started = performance.now()
    const { seed, subscribers: count } = this.#prepared.options
    const subscribers = Array.from({ length: count }, (_, number) => {
      const isSlow = number % SLOW_EVERY === 0
      return new Subscriber(this.#state, { number, seed, isSlow })
    })
    const running = subscribers.map((subscriber) => subscriber.run())
    await Promise.all(Array.from({ length: WRITERS }, () => this.#writer()))
    await this.#prepared.faults.whenDone()
    await this.#promoting
    this.#state.isDone = true
    await Promise.all(running)
    const last = Math.max(...this.#commits.map(({ sequence }) => sequence))
    const finalRelease = 1 + (this.#promotions % this.#releases.length)
    await Promise.all(subscribers.map((each) => each.finish(last, finalRelease)))
    const watches = subscribers.flatMap((each) => each.watches)
    return {
      history: { commits: this.#commits, watches, finalRelease },
      counts: sumOf(subscribers.map(({ counts }) => counts)),
      faults: this.#prepared.faults.done,
      promotions: this.#promotions,
      failures: this.#state.failures,
      millis: performance.now() - started,
    }
  }

  async #writer(): Promise<void> {
    const { options, faults } = this.#prepared
    while (this.#next < options.mutations) {
      const number = this.#next++
      faults.reach(number)
      if (number % Math.ceil(options.mutations / (options.promotions + 1)) === 1 && number > 1) {
        this.#promoting = this.#promoting.then(() => this.#promote())
      }
      await this.#mutate(number)
      const random = new SeededRandom(options.seed, number)
      await delay(random.below(PAUSE_MILLIS_MAX))
    }
  }

  /** Binds the Channel to the other Release. */
  async #promote(): Promise<void> {
    const until = performance.now() + OUTCOME_MILLIS_MAX
    const releaseId = this.#releases[(this.#promotions + 1) % this.#releases.length]!
    for (;;) {
      try {
        await this.#promoter.promote(releaseId)
        this.#promotions += 1
        return
      } catch (error) {
        // The server was killed, and starts again.
        if (performance.now() > until) throw error
        await delay(RETRY_MILLIS)
      }
    }
  }

  async #mutate(number: number): Promise<void> {
    const { options, cells } = this.#prepared
    const plan = plannedMutation(options.seed, number)
    const request = {
      function: 'live.change',
      arguments: changeArguments(plan, cells),
      operationId: operationId(),
    }
    const { status, body } = await this.#untilFinal(() => mutation(this.#app, request))
    if (status !== 200) {
      const code = body.error.code
      if (code !== 'APP_ABORTED') this.#state.failures.push(`Mutation ${number}: ${code}`)
      return
    }
    const { commitSequence } = body.metadata
    if (commitSequence === null) return
    const sequence = Number(commitSequence)
    this.#commits.push({ sequence, changes: plan.changes })
    this.#state.known = Math.max(this.#state.known, sequence)
  }

  /** Repeats the request until its outcome is known. */
  async #untilFinal(send: () => Promise<Reply>): Promise<Reply> {
    const until = performance.now() + OUTCOME_MILLIS_MAX
    const outcomes = new Map<string, number>()
    while (performance.now() < until) {
      const reply = await Promise.race([send().catch(() => null), delay(REPLY_MILLIS_MAX)])
      if (reply && isFinal(reply)) return reply
      const outcome = reply?.body.error.code ?? (reply === null ? 'no connection' : 'no reply')
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      await delay(RETRY_MILLIS)
    }
    throw new Error(`a Mutation has no outcome: ${JSON.stringify([...outcomes])}`)
  }
}

function isFinal({ status, body }: Reply): boolean {
  return status === 200 || !(body.error.retryable || OUTCOME_UNKNOWN.includes(body.error.code))
}

function sumOf(all: readonly SubscriberCounts[]): SubscriberCounts {
  const sum = (of: (counts: SubscriberCounts) => number) =>
    all.reduce((total, each) => total + of(each), 0)
  return {
    connections: sum(({ connections }) => connections),
    states: sum(({ states }) => states),
    parts: sum(({ parts }) => parts),
    patches: sum(({ patches }) => patches),
    slowResyncs: sum(({ slowResyncs }) => slowResyncs),
  }
}
