/** Runs faults one after the other: each is injected, observed, healed and observed again. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Application } from '../application.ts'
import { storedNumbers } from '../restarts/entries.ts'
import { Load } from '../restarts/load.ts'
import { type Observation, Probes } from './probes.ts'

export interface Fault {
  /** The broken part, for the name of a test. */
  readonly name: string
  readonly inject: () => unknown
  readonly heal: () => unknown
  /** The observation during the fault. All other components must be as without it. */
  readonly meanwhile: Partial<Observation>
}

/** The observation without a fault. */
export const WHOLE = {
  query: 'OK',
  mutation: 'OK',
  live: 200,
  ready: 200,
  operators: 200,
  change: 'OK',
  health: {
    runtime: 'healthy',
    documents: 'healthy',
    scheduler: 'healthy',
    releases: 'healthy',
    files: 'healthy',
    realtime: 'healthy',
    logs: 'healthy',
  },
} satisfies Observation

/** Time limit for a fault to be observed, or to end, which only a hang exceeds. */
const DEADLINE_MILLIS = 60_000
const POLL_MILLIS = 100
const CALLS_PER_SECOND = 20

/** The faults of one server, under calls of clients that follow the retry policy. */
export class FaultRun {
  readonly #app: Application
  readonly #probes: Probes
  readonly #load: Load

  constructor(app: Application) {
    this.#app = app
    this.#probes = new Probes(app)
    this.#load = new Load(app, CALLS_PER_SECOND)
  }

  async run({ name, inject, heal, meanwhile }: Fault): Promise<void> {
    await this.untilObserved(WHOLE)
    await inject()
    try {
      const expected = { ...WHOLE, ...meanwhile }
      const visible = await this.untilObserved(expected)
      // An observation that holds must hold more than once.
      expect(await this.#probes.observe()).toEqual(expected)
      process.stdout.write(`${name}: visible after ${visible} ms\n`)
    } finally {
      await heal()
    }
    const back = await this.untilObserved(WHOLE)
    process.stdout.write(`${name}: back after ${back} ms\n`)
    // The callers get their results before the next fault.
    await this.#load.untilAnswered(CALLS_PER_SECOND)
  }

  /** Resolves with the milliseconds until the whole observation holds at one time. */
  async untilObserved(expected: Observation): Promise<number> {
    const begun = performance.now()
    for (;;) {
      const observed = await this.#probes.observe()
      const millis = Math.round(performance.now() - begun)
      try {
        expect(observed).toEqual(expected)
        return millis
      } catch (error) {
        if (millis > DEADLINE_MILLIS) throw error
      }
      await delay(POLL_MILLIS)
    }
  }

  /** Expects that nothing acknowledged is lost, and that nothing rejected is stored. */
  async end(): Promise<void> {
    await this.#load.stop()
    const { report } = this.#load
    const { added, rejected, withoutRetryAfter } = this.#probes
    process.stdout.write(`${report.answered} calls, retried ${JSON.stringify(report.retries)}\n`)
    expect(report.errors).toEqual([])
    expect(report.missed).toEqual([])
    expect(withoutRetryAfter).toEqual([])
    const stored = await storedNumbers(this.#app)
    const storedOnce = new Set(stored)
    expect(stored.length).toBe(storedOnce.size)
    expect([...report.added, ...added].filter((number) => !storedOnce.has(number))).toEqual([])
    expect(rejected.filter((number) => storedOnce.has(number))).toEqual([])
  }
}
