/**
 * A run: 32 clients over HTTP take the transactions of the workload one after the other, ask again
 * until each is settled, and write down what they saw. Faults are injected meanwhile.
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
import { answersOf, argumentsOf, cellsOf } from './requests.ts'
import { STORES } from './stores.ts'
import { epochOf, finalReads, type Planned, planned } from './workload.ts'
import { FUNCTIONS, SCHEMA } from './workspace.ts'

export interface RunOptions {
  readonly store: keyof typeof STORES
  readonly seed: number
  readonly transactions: number
  readonly faults: FaultCounts
}

export interface Run {
  readonly history: readonly Transaction[]
  readonly faults: FaultCounts
  /** Answers that no transaction of the workload may get. */
  readonly failures: readonly string[]
  /** Requests that were sent again because nobody knew what had become of them. */
  readonly repeats: number
  /** Answers that came from the record of the operation. */
  readonly replays: number
  readonly millis: number
}

const CLIENTS = 32
/** Longer than a server, a store and a runner need to come back. */
const PATIENCE_MILLIS = 30_000
/** Longer than any invocation lives; a request that takes longer is a finding. */
const ANSWER_MILLIS = 15_000
const PAUSE_MILLIS = 20

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
    const faults = new Faults(app, store, { seed, transactions, counts })
    return await new Driver(app, cellsOf(prepared.body.result), faults, options).run()
  } finally {
    await app.of.dispose()
    await store.dispose()
  }
}

type Send = () => Promise<Reply>

interface Settled {
  readonly status: number
  readonly body: Json
  /** When the last request was sent. */
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
  /** A transaction could not be settled: no other one will be. */
  #isStuck = false

  constructor(app: Application, cells: readonly string[], faults: Faults, options: RunOptions) {
    this.#app = app
    this.#cells = cells
    this.#faults = faults
    this.#options = options
  }

  async run(): Promise<Run> {
    const started = performance.now()
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#client(client)))
    await this.#faults.settled()
    const millis = performance.now() - started
    // What a last crash left is what counts.
    await this.#app.restart('kill')
    await this.#readAll()
    const { done } = this.#faults
    return {
      history: this.#history,
      faults: { ...done, servers: done.servers + 1 },
      failures: this.#failures,
      repeats: this.#repeats,
      replays: this.#replays,
      millis,
    }
  }

  async #client(client: number): Promise<void> {
    const { seed, transactions } = this.#options
    while (this.#next < transactions && !this.#isStuck) {
      const number = this.#next++
      this.#faults.reach(number)
      await this.#perform(client, planned(seed, number))
    }
  }

  async #readAll(): Promise<void> {
    const { seed, transactions } = this.#options
    for (let epoch = 1; epoch <= epochOf(transactions - 1); epoch++) {
      await this.#perform(CLIENTS, finalReads(seed, transactions + epoch, epoch))
    }
  }

  async #perform(client: number, plan: Planned): Promise<void> {
    const { number, kind, operations } = plan
    const invoked = ++this.#moment
    const send = this.#request(plan)
    if (plan.repeat === 'at once') send().catch(() => undefined)
    const settled = await this.#settle(number, send)
    if (plan.repeat === 'when answered' && settled?.status === 200) {
      await this.#repeat(number, send, settled.body)
    }
    const completed = settled === null ? Number.POSITIVE_INFINITY : ++this.#moment
    const metadata = settled?.status === 200 ? settled.body.metadata : {}
    if (metadata.replayed === true) this.#replays += 1
    const code = settled?.body.error?.code ?? ABORT
    if (code !== ABORT) this.#failures.push(`T${number} was answered ${settled?.status} ${code}`)
    this.#history.push({
      ...{ number, client, kind, operations, completed },
      // An attempt of a Query that nobody answered had no effect.
      invoked: kind === 'query' && settled !== null ? settled.sent : invoked,
      answers: settled?.status === 200 ? answersOf(settled.body.result) : null,
      outcome: settled === null ? 'unknown' : settled.status === 200 ? 'committed' : 'aborted',
      commitSequence: sequenceOf(metadata.commitSequence),
      snapshotSequence: sequenceOf(metadata.snapshotSequence),
      attempts: metadata.attempts ?? 1,
    })
  }

  /** Asks until the answer is final; null where patience ends. */
  async #settle(number: number, send: Send): Promise<Settled | null> {
    const deadline = performance.now() + PATIENCE_MILLIS
    while (performance.now() < deadline) {
      const sent = ++this.#moment
      const reply = await Promise.race([send().catch(() => null), delay(ANSWER_MILLIS)])
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

  /** A Mutation that was answered is not done again: the first answer comes back. */
  async #repeat(number: number, send: Send, first: Json): Promise<void> {
    const again = (await this.#settle(number, send))?.body
    const expected = { ...first.metadata, replayed: true }
    const isSame =
      isDeepStrictEqual(again?.metadata, expected) && isDeepStrictEqual(again.result, first.result)
    if (isSame) this.#replays += 1
    else this.#failures.push(`T${number} was answered differently when it was sent again`)
  }

  #request({ kind, together, operations, aborts }: Planned): Send {
    const input = argumentsOf(operations, this.#cells)
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

/** What the Function fails with where the workload says so. */
const ABORT = 'APP_ABORTED'
/** Codes after which the same request is sent again: it may or may not have had an effect. */
const UNSETTLED = ['RESULT_UNCERTAIN', 'DEADLINE_EXCEEDED']

function isFinal(status: number, body: Json): boolean {
  return status === 200 || !(body.error.retryable || UNSETTLED.includes(body.error.code))
}

function sequenceOf(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text)
}
