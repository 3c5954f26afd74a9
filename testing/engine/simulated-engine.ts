/**
 * An engine whose scheduler runs under simulated time: nothing happens before the clock is
 * advanced. Documents are real, handlers run in this process.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../../src/documents/store.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Release } from '../../src/engine/releases/executable-release.ts'
import type { CronPlan, PlannedCron } from '../../src/engine/scheduling/crons/crons.ts'
import { ManualTimers } from '../../src/engine/scheduling/timers.ts'
import { TestSystem } from '../../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import type { ReleaseId } from '../../src/value/ids.ts'
import type { FunctionManifest } from '../../src/value/manifest.ts'
import { TestConfiguration } from '../configurations.ts'
import { testCursors } from '../cursors.ts'
import { noStorage } from '../files/function-storage.ts'
import { inProcessPool, type TestHandler } from './in-process-pool.ts'

/** A clock whose wall time can be set apart from its monotonic time. */
export class SteppedSystem extends TestSystem {
  #stepMillis = 0

  override nowMillis(): number {
    return super.nowMillis() + this.#stepMillis
  }

  override nowMicros(): bigint {
    return BigInt(this.nowMillis()) * 1_000n
  }

  override monotonicMillis(): number {
    return super.nowMillis()
  }

  /** Sets the wall clock forward or back. */
  step(millis: number): void {
    this.#stepMillis += millis
  }
}

export interface SimulatedEngine {
  readonly engine: Engine
  readonly system: SteppedSystem
  readonly timers: ManualTimers
  readonly log: MemoryLog
  readonly metrics: Metrics
  readonly release: Release
  /** Advances the clock from timer to timer, and waits for the work of each. */
  advance(millis: number): Promise<void>
  /** Enables the Crons of the Release. */
  follow(crons: readonly PlannedCron[], activationOf?: CronPlan['activationOf']): Promise<void>
  /** Ends the engine as a killed server does; `reopen` continues with its documents. */
  reopen(): Promise<SimulatedEngine>
  close(): Promise<void>
}

interface SimulatedInput {
  readonly functions: readonly FunctionManifest[]
  readonly handlers: Readonly<Record<string, TestHandler>>
  readonly admits?: () => boolean
  readonly system?: SteppedSystem
  readonly directory?: string
  /** Opens the documents, which the engine closes; by default those of the directory. */
  readonly open?: () => Promise<DocumentStore>
  /** Wraps the document store of the engine. */
  readonly wrap?: (store: DocumentStore) => DocumentStore
}

const RELEASE_ID = `rel_${'0'.repeat(26)}` as ReleaseId

export async function simulatedEngine(input: SimulatedInput): Promise<SimulatedEngine> {
  const directory = input.directory ?? mkdtempSync(join(tmpdir(), 'svc-simulated-'))
  const system = input.system ?? new SteppedSystem()
  const timers = new ManualTimers(system)
  const log = memoryLog()
  const metrics = new Metrics(system)
  const { wrap = (real: DocumentStore) => real } = input
  const { open = () => openSqliteDocuments(join(directory, 'documents.db')) } = input
  const store = wrap(await open())
  const pool = inProcessPool(input.handlers)
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  const engine = createEngine({
    store,
    pool,
    system,
    timers,
    log: log.log,
    metrics,
    storage: noStorage(),
    issueGuest: () => 'guest',
    cursors: testCursors(),
    configuration: new TestConfiguration(),
  })
  const release: Release = {
    releaseId: RELEASE_ID,
    source: '',
    sourceMap: null,
    tables: new Map(),
    functions: new Map(input.functions.map((each) => [each.name, each])),
  }
  const { scheduler } = engine
  scheduler.start({ load: async () => release, admits: input.admits ?? (() => true) })
  await scheduler.whenSettled()
  const end = () => engine.close()
  return {
    engine,
    system,
    timers,
    log,
    metrics,
    release,
    async advance(millis) {
      const untilMillis = system.monotonicMillis() + millis
      for (;;) {
        const next = timers.nextMillis
        if (next === null || next > untilMillis) break
        system.advance(Math.max(0, next - system.monotonicMillis()))
        timers.run()
        await scheduler.whenSettled()
      }
      system.advance(untilMillis - system.monotonicMillis())
    },
    async follow(crons, activationOf = () => ({ revision: 0n, isEnabled: true })) {
      scheduler.crons.follow({ releaseId: release.releaseId, crons, activationOf })
      await scheduler.whenSettled()
    },
    async reopen() {
      await end()
      return simulatedEngine({ ...input, directory, system })
    },
    async close() {
      await end()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
