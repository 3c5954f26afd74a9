import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { oneDocument, poolBench } from '../../../testing/runners.ts'
import { TestSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import { FunctionUsage } from './function-usage.ts'

const runner = new URL('../../../testing/hostile/malicious-runner.ts', import.meta.url)
const bench = poolBench({ command: [process.execPath, runner.pathname] })
afterAll(() => bench.pool.close())

let system: TestSystem
let log: MemoryLog
let metrics: Metrics
let usage: FunctionUsage

beforeEach(() => {
  system = new TestSystem()
  log = memoryLog(system)
  metrics = new Metrics(system)
  usage = new FunctionUsage({ system, log: log.log, metrics })
})

const invocationOf = (name: string) => ({
  definition: { name } as FunctionManifest,
  prepared: { release: { releaseId: 'rel_test' } } as unknown as PreparedRelease,
})

/** Records a run of `millis` milliseconds. */
function record(
  invocation: ReturnType<typeof invocationOf>,
  outcome: object,
  { millis = 10, grownBytes }: { millis?: number; grownBytes?: number } = {},
): void {
  const startedMillis = system.monotonicMillis()
  system.advance(millis)
  usage.record(invocation, outcome as RunnerOutcome, { startedMillis, grownBytes })
}

const counted = () => {
  const { functionRuns, functionCpuMicros } = metrics.collect().counters
  return [functionRuns, functionCpuMicros]
}

describe('the CPU of a run', () => {
  test.each<[string, object, number]>([
    ['is the time that the runner reports', { kind: 'returned', cpuMicros: 4_000 }, 4_000],
    ['is the elapsed time where the runner reports more', { kind: 'threw', cpuMicros: 4e9 }, 1e4],
    ['is the elapsed time of a call over its limit', { kind: 'limit', limit: 'cpu' }, 1e4],
    ['is zero for a call without a report', { kind: 'deadline' }, 0],
    ['is zero where the runner failed', { kind: 'broken', detail: 'x' }, 0],
  ])('%s', (_, outcome, micros) => {
    record(invocationOf('a.b'), outcome)
    expect(counted()).toEqual([1, micros])
  })

  test('the CPU is not counted for a lost run, which is repeated', () => {
    record(invocationOf('a.b'), { kind: 'lost' })
    expect(counted()).toEqual([0, 0])
  })

  test('the CPU of a run is at most the elapsed time, even if its runner lies', async () => {
    const outcome = await bench.pool.invoke(
      bench.release(''),
      bench.call('claimsMuchCpu'),
      oneDocument,
    )
    expect(outcome).toMatchObject({ kind: 'returned', cpuMicros: Number.MAX_SAFE_INTEGER })
    record(invocationOf('a.b'), outcome, { millis: 3 })
    expect(counted()).toEqual([1, 3_000])
  })
})

describe('a period', () => {
  const records = () =>
    log.records().map(({ function: name, runs, cpuMicros, durationMicros, largestGrowthBytes }) => {
      return [name, runs, cpuMicros, durationMicros, largestGrowthBytes]
    })

  test('ends with one record for each Function that ran and resets the counts', () => {
    const [one, two] = [invocationOf('a.one'), invocationOf('a.two')]
    record(one, { kind: 'returned', cpuMicros: 1_000 }, { grownBytes: 500 })
    record(two, { kind: 'returned', cpuMicros: 7 })
    record(one, { kind: 'failed', cpuMicros: 2_000 }, { grownBytes: 400 })
    usage.report()
    expect(records()).toEqual([
      ['a.one', 2, 3_000, 20_000, 500],
      ['a.two', 1, 7, 10_000, 0],
    ])
    usage.report()
    record(two, { kind: 'returned', cpuMicros: 9 })
    usage.report()
    expect(records().slice(2)).toEqual([['a.two', 1, 9, 10_000, 0]])
    expect(metrics.collect().gauges.largestFunctionGrowthBytes).toBe(500)
  })

  test('ends with at most 1,000 records of Functions and one of all others', () => {
    for (let i = 0; i < 1_005; i++) {
      record(invocationOf(`many.f${i}`), { kind: 'returned', cpuMicros: 1 })
    }
    usage.stop()
    expect(records()).toHaveLength(1_001)
    expect(records().at(-1)).toEqual([undefined, 5, 5, 50_000, 0])
  })
})
