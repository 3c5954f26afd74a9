/**
 * Schedules the runs of the Crons in force. A time that has come, its piece of scheduled work and
 * the next time are one commit, so each time becomes one run on any number of restarts. It sleeps
 * until the next time; the wall clock decides, and a step of it is noticed within a minute.
 */
import type { System } from '../../../system/system.ts'
import type { Logger } from '../../../telemetry/log.ts'
import type { Overlap } from '../../../value/scheduling/crons.ts'
import { CRON_DOCUMENTS } from '../../../value/scheduling/scheduled-work.ts'
import type { ScheduledChange } from '../../commits/read-set.ts'
import type { SystemDocuments } from '../../files/system-documents.ts'
import {
  insertWork,
  insertWorkAs,
  readWork,
  type ScheduledSummary,
  stateOf as stateOfWork,
  summaryOf,
  type WorkFields,
} from '../../scheduled-work/scheduled-documents.ts'
import type { Transaction } from '../../transactions/transaction.ts'
import type { Timers } from '../timers.ts'
import {
  type CronState,
  readCronState,
  type StoredCronState,
  stateOf,
  writeCronState,
} from './cron-states.ts'
import { cronStep } from './cron-steps.ts'
import { type CronTimes, cronTimes, type DeclaredTimes } from './cron-times.ts'

/** A Cron of the Release in force. */
export interface PlannedCron extends DeclaredTimes {
  readonly name: string
  readonly overlap: Overlap
  readonly function: string
  readonly kind: WorkFields['kind']
  /** Stored JSON of the checked arguments. */
  readonly argumentsText: string
}

export interface CronActivation {
  /** A new revision makes the Cron wait for its next time. */
  readonly revision: bigint
  readonly isEnabled: boolean
}

export interface CronPlan {
  readonly releaseId: string
  readonly crons: readonly PlannedCron[]
  /** Returns what operators have decided until now. */
  readonly activationOf: (name: string) => CronActivation
}

export interface CronsOptions {
  readonly documents: SystemDocuments
  readonly system: System
  readonly log: Logger
  readonly timers: Timers
  /** Returns whether the Environment serves. */
  readonly admits: () => boolean
}

/** The outcome of a run that an operator asked for. */
export type CronRun =
  | { readonly kind: 'scheduled'; readonly work: ScheduledSummary }
  /** The run before has not ended. */
  | { readonly kind: 'busy' }
  /** The ID belongs to other work, or no Cron in force has the name. */
  | { readonly kind: 'taken' | 'unknown' }

interface Entry {
  readonly cron: PlannedCron
  readonly times: CronTimes
}

/** Pause after a failure of the store. */
const RETRY_MILLIS = 1_000
/** Difference between the clocks beyond which the wall clock was set. */
const CLOCK_STEP_MICROS = 1_000_000
/** States that one read of all finds. */
const STATES_MAX = 4_096

export class Crons {
  readonly #options: CronsOptions
  #plan: CronPlan = { releaseId: '', crons: [], activationOf: () => ENABLED }
  #entries: ReadonlyMap<string, Entry> = new Map()
  /** Names whose stored state may ask for something now. */
  readonly #dirty = new Set<string>()
  /** The next time of each Cron whose state was read. */
  readonly #next = new Map<string, bigint>()
  /** True if states of Crons that are not in force may be stored. */
  #mayHaveOthers = false
  #isStarted = false
  #isStopped = false
  #pumping: Promise<void> | null = null
  #pumpsAgain = false
  #cancelTimer: () => void = () => undefined
  #failingSinceMillis: number | null = null
  #clocks: { readonly micros: bigint; readonly monotonic: number } | null = null

  constructor(options: CronsOptions) {
    this.#options = options
  }

  /** Monotonic milliseconds of the first of the failures in a row; null without one. */
  get failingSinceMillis(): number | null {
    return this.#failingSinceMillis
  }

  /** The next time of each enabled Cron in force that is known, in microseconds. */
  get nextTimes(): ReadonlyMap<string, bigint> {
    return this.#next
  }

  /**
   * Puts the Crons of a Release in force. Those that were in force keep their next time where their
   * declared times and activation are the same. Others lose their state.
   */
  follow(plan: CronPlan): void {
    this.#plan = plan
    this.#entries = new Map(plan.crons.map((cron) => [cron.name, { cron, times: cronTimes(cron) }]))
    this.#mayHaveOthers = true
    this.wake()
  }

  /** Ends what is in force, for no Release; states stay. */
  suspend(): void {
    this.#entries = new Map()
    this.wake()
  }

  start(): void {
    this.#isStarted = true
    this.wake()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
  }

  /** Reads every state again. */
  wake(): void {
    this.#next.clear()
    for (const name of this.#entries.keys()) this.#dirty.add(name)
    this.#pump()
  }

  /**
   * Resolves once no time that has come is being scheduled. After a change of the plan that means
   * that no run follows from the plan before.
   */
  async whenIdle(): Promise<void> {
    while (this.#pumping !== null) await this.#pumping
  }

  /** Notices the end of runs. */
  onCommit(changes: readonly ScheduledChange[]): void {
    for (const { after } of changes) {
      const name = after?.get('cron')
      if (typeof name !== 'string' || !this.#entries.has(name)) continue
      const state = stateOfWork(after!)
      if (state === 'pending' || state === 'running') continue
      this.#dirty.add(name)
      this.#pump()
    }
  }

  /** Returns the stored states by name. */
  states(): Promise<ReadonlyMap<string, StoredCronState>> {
    return this.#options.documents.read(async (transaction) => {
      const states = await allStates(transaction)
      return new Map(states.map((state) => [state.name, state]))
    })
  }

  /** Schedules a run now, beside the times. A repeat with the same ID finds the first run. */
  run(name: string, scheduledId: string): Promise<CronRun> {
    const { documents, system } = this.#options
    return documents.change(async (transaction): Promise<CronRun> => {
      const existing = await readWork(transaction, scheduledId)
      if (existing !== null) {
        if (existing.cron !== name) return { kind: 'taken' }
        return { kind: 'scheduled', work: summaryOf(existing) }
      }
      const entry = this.#entries.get(name)
      if (entry === undefined) return { kind: 'unknown' }
      const stored = await readCronState(transaction, name)
      if (await isBusy(transaction, stored)) return { kind: 'busy' }
      const nowMicros = system.nowMicros()
      await insertWorkAs(transaction, scheduledId, this.#workOf(entry.cron, nowMicros))
      const before: CronState = stored ?? NO_STATE
      const state = { ...before, lastRunAtMicros: nowMicros, scheduledId }
      await writeCronState(transaction, name, { stored, state })
      const work = await readWork(transaction, scheduledId)
      return { kind: 'scheduled', work: summaryOf(work!) }
    })
  }

  #pump(): void {
    if (!this.#isStarted || this.#isStopped) return
    if (this.#pumping !== null) {
      this.#pumpsAgain = true
      return
    }
    this.#pumpsAgain = false
    this.#cancelTimer()
    this.#pumping = this.#advance().then(
      () => this.#endPump(null),
      (error: unknown) => this.#endPump(error),
    )
  }

  #endPump(error: unknown): void {
    this.#pumping = null
    if (this.#isStopped) return
    if (error !== null) {
      this.#failingSinceMillis ??= this.#options.system.monotonicMillis()
      this.#options.log.error('cron.schedule_failed', { error })
      this.#sleep(RETRY_MILLIS)
      return
    }
    this.#failingSinceMillis = null
    if (this.#pumpsAgain) this.#pump()
    else this.#sleep(this.#sleepMillis())
  }

  #sleep(millis: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#options.timers.set(millis, () => this.#pump())
  }

  #sleepMillis(): number {
    const { system, timers } = this.#options
    const nowMicros = system.nowMicros()
    let millis = timers.sleepMillisMax
    for (const atMicros of this.#next.values()) {
      millis = Math.min(millis, Math.max(0, Math.ceil(Number(atMicros - nowMicros) / 1_000)))
    }
    return millis
  }

  async #advance(): Promise<void> {
    if (!this.#options.admits()) {
      this.#next.clear()
      return
    }
    this.#noticeClockStep()
    const nowMicros = this.#options.system.nowMicros()
    for (const [name, atMicros] of this.#next) if (atMicros <= nowMicros) this.#dirty.add(name)
    for (const name of this.#dirty) {
      if (this.#isStopped) return
      // A change meanwhile adds it again.
      this.#dirty.delete(name)
      try {
        await this.#advanceOne(name)
      } catch (error) {
        this.#dirty.add(name)
        throw error
      }
    }
    if (this.#mayHaveOthers) await this.#removeOthers()
  }

  #noticeClockStep(): void {
    const { system } = this.#options
    const [micros, monotonic] = [system.nowMicros(), system.monotonicMillis()]
    const last = this.#clocks
    this.#clocks = { micros, monotonic }
    if (last === null) return
    const step = Number(micros - last.micros) - (monotonic - last.monotonic) * 1_000
    if (Math.abs(step) < CLOCK_STEP_MICROS) return
    for (const name of this.#entries.keys()) this.#dirty.add(name)
  }

  /** Schedules the run that is due, if any, with the next time. */
  async #advanceOne(name: string): Promise<void> {
    const { documents, log } = this.#options
    const step = await documents.change(async (transaction) => {
      const entry = this.#entries.get(name)
      if (entry === undefined) return null
      const activation = this.#plan.activationOf(name)
      return activation.isEnabled ? this.#step(transaction, entry, activation) : null
    })
    if (step === null) {
      this.#next.delete(name)
      return
    }
    const { state, isSkipped, cron } = step
    if (state.nextAtMicros === null) this.#next.delete(name)
    else this.#next.set(name, state.nextAtMicros)
    if (!isSkipped) return
    const { function: callee, overlap } = cron
    const { releaseId } = this.#plan
    const message = `A time of the Cron ${name} is left out: the run before has not ended.`
    log.warn('cron.skipped', { message, cron: name, function: callee, overlap, releaseId })
  }

  async #step(transaction: Transaction, { cron, times }: Entry, { revision }: CronActivation) {
    const { name, overlap } = cron
    const basis = basisOf(cron, revision)
    const stored = await readCronState(transaction, name)
    const nowMicros = this.#options.system.nowMicros()
    const busy = await isBusy(transaction, stored)
    const input = { times, basis, overlap, nowMicros, isBusy: busy }
    const { state, runsAtMicros, isSkipped } = cronStep(stored, input)
    if (runsAtMicros !== null) {
      const scheduledId = await insertWork(transaction, this.#workOf(cron, runsAtMicros))
      const ran = { ...state, lastRunAtMicros: nowMicros, scheduledId }
      await writeCronState(transaction, name, { stored, state: ran })
    } else if (stored === null || !isEqual(stored, state)) {
      await writeCronState(transaction, name, { stored, state })
    }
    return { state, isSkipped, cron }
  }

  async #removeOthers(): Promise<void> {
    this.#mayHaveOthers = false
    const kept = this.#entries
    try {
      await this.#options.documents.change(async (transaction) => {
        for (const { id, name } of await allStates(transaction)) {
          if (!kept.has(name)) await transaction.delete(id)
        }
      })
    } catch (error) {
      this.#mayHaveOthers = true
      throw error
    }
  }

  #workOf(cron: PlannedCron, dueAtMicros: bigint): WorkFields {
    const { name, function: callee, kind, argumentsText } = cron
    return {
      function: callee,
      kind,
      releaseId: this.#plan.releaseId,
      argumentsText,
      dueAtMicros,
      source: 'cron',
      cron: name,
    }
  }
}

const ENABLED: CronActivation = { revision: 0n, isEnabled: true }

const NO_STATE: CronState = {
  basis: '',
  nextAtMicros: null,
  lastDueAtMicros: null,
  lastRunAtMicros: null,
  scheduledId: null,
  queued: 0,
}

function basisOf({ schedule, timeZone, everyMillis }: PlannedCron, revision: bigint): string {
  return JSON.stringify([schedule, timeZone, everyMillis, String(revision)])
}

async function allStates(transaction: Transaction): Promise<StoredCronState[]> {
  const range = { table: CRON_DOCUMENTS, index: 'byName', equal: [], order: 'asc' } as const
  const { documents } = await transaction.range({ ...range, limit: STATES_MAX })
  return documents.map(stateOf)
}

/** Returns whether the newest run is unfinished. Work that left the history has ended. */
async function isBusy(transaction: Transaction, state: CronState | null): Promise<boolean> {
  if (state === null || state.scheduledId === null) return false
  const work = await readWork(transaction, state.scheduledId)
  return work?.state === 'pending' || work?.state === 'running'
}

function isEqual(one: CronState, other: CronState): boolean {
  return (
    one.basis === other.basis &&
    one.nextAtMicros === other.nextAtMicros &&
    one.lastDueAtMicros === other.lastDueAtMicros &&
    one.queued === other.queued
  )
}
