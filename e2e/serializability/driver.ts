/**
 * Runs the transactions of the workload with 32 clients over HTTP. Each client repeats a
 * transaction until its outcome is known and records its reply. Faults are injected during the run.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import {
  type Application,
  application,
  type Json,
  mutation,
  operationId,
  query,
  type Reply,
} from '../application.ts'
import { type FaultCounts, Faults } from './faults.ts'
import type { Transaction } from './history.ts'
import { replaceCells } from './operators.ts'
import { parseAnswers, parseCells, toArguments } from './requests.ts'
import { STORES } from './stores.ts'
import { epochOf, finalReads, type Planned, planned } from './workload.ts'
import { FUNCTIONS, SCHEMA } from './workspace.ts'

export interface RunOptions {
  readonly store: keyof typeof STORES
  readonly seed: number
  /** A run makes more of them until RERUNS_MIN ran again. */
  readonly transactions: number
  readonly faults: FaultCounts
}

export interface Run {
  readonly history: readonly Transaction[]
  readonly faults: FaultCounts
  /** Replies that no transaction of the workload may get. */
  readonly failures: readonly string[]
  /** Number of requests that were repeated because their outcome was unknown. */
  readonly repeats: number
  /** Number of replies from the record of the operation. */
  readonly replays: number
  /** Number of documents that operators replaced. */
  readonly replacements: number
  /** Number of their replacements that another commit overtook. */
  readonly conflicts: number
  readonly millis: number
}

const CLIENTS = 32
const OPERATORS = 2
/** Time limit for the outcome of a request: a server, store and runner restart faster. */
const TIMEOUT_MILLIS = 300_000
/** Time limit for a reply: the deadline of an invocation and time to spare. */
const REPLY_MILLIS_MAX = 60_000
const PAUSE_MILLIS = 20
/** Minimum number of transactions that a conflict ran again: fewer would prove little. */
export const RERUNS_MIN = 4
/** Factor of the transactions that a run makes at most to find conflicts. */
const EXTENSION_MAX = 20

export async function runWorkload(options: RunOptions): Promise<Run> {
  const store = await STORES[options.store]()
  const app = await application((workspace) => {
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
    for (const file of ['channels', 'messages']) {
      writeFileSync(join(workspace, `functions/${file}.ts`), '')
    }
    writeFileSync(join(workspace, 'functions/workload.ts'), FUNCTIONS)
  }, store.environment).catch(async (error) => {
    await store.dispose()
    throw error
  })
  try {
    const prepared = await mutation(app, { function: 'workload.prepare' })
    if (prepared.status !== 200) throw new Error(JSON.stringify(prepared.body))
    const { seed, transactions, faults: counts } = options
    const faults = new Faults(app, store, { seed, transactions, counts, probe: PROBE })
    return await new Driver(app, parseCells(prepared.body.result), faults, options).run()
  } finally {
    await app.installation.dispose()
    await store.dispose()
  }
}

const NOTHING = { type: 'array', value: [] }
/** A Mutation without operations. */
const PROBE = {
  function: 'workload.run',
  arguments: { operations: NOTHING, cells: NOTHING, aborts: { type: 'boolean', value: false } },
}

type Send = () => Promise<Reply>

interface Outcome {
  readonly status: number
  readonly body: Json
  /** Time of the last request. */
  readonly sent: number
}

class Driver {
  readonly #app: Application
  readonly #cells: readonly string[]
  readonly #faults: Faults
  readonly #options: RunOptions
  readonly #history: Transaction[] = []
  readonly #failures: string[] = []
  #moment = 0
  #next = 0
  #repeats = 0
  #replays = 0
  #replacements = 0
  #conflicts = 0
  #reruns = 0
  #isDone = false
  /** True if a transaction has no outcome; then no other one is started. */
  #isStuck = false

  constructor(app: Application, cells: readonly string[], faults: Faults, options: RunOptions) {
    this.#app = app
    this.#cells = cells
    this.#faults = faults
    this.#options = options
  }

  async run(): Promise<Run> {
    const started = performance.now()
    const operators = Array.from({ length: OPERATORS }, (_, i) => this.#operator(i))
    // The failure is thrown below; until then it must not count as unhandled.
    for (const operator of operators) operator.catch(() => undefined)
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#client(client)))
    this.#isDone = true
    // A fault that failed is the cause of all that follows, such as a server that did not start.
    await Promise.all([this.#faults.whenDone(), ...operators])
    const millis = performance.now() - started
    // The state after a last crash is the one to check.
    await this.#app.restart('kill')
    await this.#readAll()
    const { done } = this.#faults
    return {
      history: this.#history,
      faults: { ...done, servers: done.servers + 1 },
      failures: this.#failures,
      repeats: this.#repeats,
      replays: this.#replays,
      replacements: this.#replacements,
      conflicts: this.#conflicts,
      millis,
    }
  }

  async #client(client: number): Promise<void> {
    const { seed } = this.#options
    while (this.#goesOn() && !this.#isStuck) {
      const number = this.#next++
      this.#faults.reach(number)
      await this.#perform(client, planned(seed, number))
    }
  }

  /** True until enough transactions ran again, of which the machine decides the number. */
  #goesOn(): boolean {
    const { transactions } = this.#options
    if (this.#next < transactions) return true
    return this.#reruns < RERUNS_MIN && this.#next < transactions * EXTENSION_MAX
  }

  async #operator(i: number): Promise<void> {
    const { seed, transactions } = this.#options
    const {
      transactions: made,
      conflicts,
      failures,
    } = await replaceCells({
      app: this.#app,
      cells: this.#cells,
      seed,
      // Beyond the numbers of the clients and of the last reads.
      first: (i + 2) * 1_000 * transactions,
      client: CLIENTS + 1 + i,
      tick: () => ++this.#moment,
      isDone: () => this.#isDone,
    })
    this.#history.push(...made)
    this.#failures.push(...failures)
    this.#replacements += made.length
    this.#conflicts += conflicts
  }

  async #readAll(): Promise<void> {
    const { seed } = this.#options
    const first = this.#next
    for (let epoch = 1; epoch <= epochOf(first - 1); epoch++) {
      await this.#perform(CLIENTS, finalReads(seed, first + epoch, epoch))
    }
  }

  async #perform(client: number, plan: Planned): Promise<void> {
    const { number, kind, operations } = plan
    const invoked = ++this.#moment
    const send = this.#request(plan)
    if (plan.repeat === 'at once') send().catch(() => undefined)
    const outcome = await this.#untilFinal(number, send)
    if (plan.repeat === 'when answered' && outcome?.status === 200) {
      await this.#repeat(number, send, outcome.body)
    }
    const completed = outcome === null ? Number.POSITIVE_INFINITY : ++this.#moment
    const metadata = outcome?.status === 200 ? outcome.body.metadata : {}
    const attempts = metadata.attempts ?? 1
    if (attempts > 1) this.#reruns += 1
    if (metadata.replayed === true) this.#replays += 1
    const code = outcome?.body.error?.code ?? ABORT
    if (code !== ABORT) this.#failures.push(`T${number} got the reply ${outcome?.status} ${code}`)
    this.#history.push({
      number,
      client,
      kind,
      operations,
      completed,
      // Attempts of a Query without a reply have no effect.
      invoked: kind === 'query' && outcome !== null ? outcome.sent : invoked,
      answers: outcome?.status === 200 ? parseAnswers(outcome.body.result) : null,
      outcome: outcome === null ? 'unknown' : outcome.status === 200 ? 'committed' : 'aborted',
      commitSequence: sequenceOf(metadata.commitSequence),
      snapshotSequence: sequenceOf(metadata.snapshotSequence),
      attempts,
    })
  }

  /** Repeats the request until its reply is final. Returns null after a timeout. */
  async #untilFinal(number: number, send: Send): Promise<Outcome | null> {
    const deadline = performance.now() + TIMEOUT_MILLIS
    while (performance.now() < deadline) {
      const sent = ++this.#moment
      const reply = await Promise.race([send().catch(() => null), delay(REPLY_MILLIS_MAX)])
      if (reply === undefined) this.#failures.push(`T${number} got no answer in time`)
      if (reply && isFinal(reply.status, reply.body)) {
        return { status: reply.status, body: reply.body, sent }
      }
      this.#repeats += 1
      await delay(PAUSE_MILLIS)
    }
    this.#isStuck = true
    return null
  }

  /** Repeats a completed Mutation, which must return the first result without another effect. */
  async #repeat(number: number, send: Send, first: Json): Promise<void> {
    const again = (await this.#untilFinal(number, send))?.body
    const expected = { ...first.metadata, replayed: true }
    const isSame =
      isDeepStrictEqual(again?.metadata, expected) && isDeepStrictEqual(again.result, first.result)
    if (isSame) this.#replays += 1
    else this.#failures.push(`T${number} got another reply when it was sent again`)
  }

  #request({ kind, together, operations, aborts }: Planned): Send {
    const input = toArguments(operations, this.#cells)
    if (kind === 'query') {
      const name = together ? 'workload.lookTogether' : 'workload.lookInTurn'
      return () => query(this.#app, { function: name, arguments: input })
    }
    const invocation = {
      function: 'workload.run',
      arguments: { ...input, aborts: { type: 'boolean', value: aborts } },
      operationId: operationId(),
    }
    return () => mutation(this.#app, invocation)
  }
}

/** The error of a Function that the workload aborts. */
const ABORT = 'APP_ABORTED'
/** Codes after which the outcome is unknown and the same request is repeated. */
const OUTCOME_UNKNOWN = ['RESULT_UNCERTAIN', 'DEADLINE_EXCEEDED']

function isFinal(status: number, body: Json): boolean {
  return status === 200 || !(body.error.retryable || OUTCOME_UNKNOWN.includes(body.error.code))
}

function sequenceOf(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text)
}
