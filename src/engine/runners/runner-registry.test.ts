import { expect, test } from 'vitest'
import { TestSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { RunnerFate } from './outcomes.ts'
import type { Runner } from './runner.ts'
import { RunnerRegistry } from './runner-registry.ts'

const FATES: readonly (RunnerFate | null)[] = [
  null,
  { kind: 'limit', limit: 'cpu' },
  { kind: 'limit', limit: 'memory' },
  { kind: 'broken', detail: 'exit code 3' },
]

/** Only what it used is looked at. */
function runnerThatUsed(cpuMicros: number | null) {
  const usage = { cpuMicros, residentBytes: 1_000 }
  return { watch: { usage, look: () => usage } } as unknown as Runner
}

test('an end counts by its reason; one that was asked for is no breakdown', () => {
  const metrics = new Metrics(new TestSystem())
  const lives = new RunnerRegistry(metrics)
  for (const fate of FATES) {
    const runner = runnerThatUsed(7)
    lives.begin(runner)
    lives.end(runner, fate, 1_000)
  }
  const { runnersStarted, runnersStopped, ...rest } = metrics.collect().counters
  expect([runnersStarted, runnersStopped]).toEqual([4, 1])
  expect([rest.runnersKilledForCpu, rest.runnersKilledForMemory, rest.runnersBroken]).toEqual([
    ...[1, 1, 1],
  ])
  expect(lives.recentBreakdowns(1_000)).toBe(3)
  expect(lives.recentBreakdowns(60_999)).toBe(3)
  expect(lives.recentBreakdowns(61_000)).toBe(0)
})

test('CPU of runners that ended stays counted, memory does not', () => {
  const lives = new RunnerRegistry(new Metrics(new TestSystem()))
  const [first, second] = [runnerThatUsed(500), runnerThatUsed(20)]
  lives.begin(first)
  lives.begin(second)
  expect(lives.usage()).toEqual({ cpuMicros: 520, residentBytes: 2_000 })
  lives.end(first, null, 0)
  expect(lives.usage()).toEqual({ cpuMicros: 520, residentBytes: 1_000 })
})
