import { expect, test } from 'vitest'
import { TestSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { RunnerFate } from '../calls/outcomes.ts'
import type { Runner } from './runner.ts'
import { RunnerRegistry } from './runner-registry.ts'

const FATES: readonly (RunnerFate | null)[] = [
  null,
  { kind: 'limit', limit: 'cpu' },
  { kind: 'limit', limit: 'memory' },
  { kind: 'broken', detail: 'exit code 3' },
]

/** A runner with nothing but its resource usage. */
function runnerThatUsed(cpuMicros: number | null) {
  const usage = { cpuMicros, residentBytes: 1_000 }
  return { watch: { usage, sampleUsage: () => usage } } as unknown as Runner
}

test('ends are counted by reason, and a stop is not a failure', () => {
  const metrics = new Metrics(new TestSystem())
  const registry = new RunnerRegistry(metrics)
  for (const fate of FATES) {
    const runner = runnerThatUsed(7)
    registry.begin(runner)
    registry.end(runner, fate, 1_000)
  }
  const { runnersStarted, runnersStopped, ...rest } = metrics.collect().counters
  expect([runnersStarted, runnersStopped]).toEqual([4, 1])
  expect([rest.runnersKilledForCpu, rest.runnersKilledForMemory, rest.runnersBroken]).toEqual([
    1, 1, 1,
  ])
  expect(registry.recentBreakdowns(1_000)).toBe(3)
  expect(registry.recentBreakdowns(60_999)).toBe(3)
  expect(registry.recentBreakdowns(61_000)).toBe(0)
})

test('the usage includes the CPU time of ended runners, but not their memory', () => {
  const registry = new RunnerRegistry(new Metrics(new TestSystem()))
  const [first, second] = [runnerThatUsed(500), runnerThatUsed(20)]
  registry.begin(first)
  registry.begin(second)
  expect(registry.usage()).toEqual({ cpuMicros: 520, residentBytes: 2_000 })
  registry.end(first, null, 0)
  expect(registry.usage()).toEqual({ cpuMicros: 520, residentBytes: 1_000 })
})
