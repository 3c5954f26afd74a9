/** The bounds of a whole process, as the clock and the kernel's figures would show them. */
import { describe, expect, test } from 'vitest'
import type { RunnerProcess } from '../../runner/processes.ts'
import { ProcessWatch } from './process-watch.ts'

const MEBIBYTE = 1024 * 1024
const LIMITS = {
  processGrowthBytes: 512 * MEBIBYTE,
  processThreads: 256,
  unexplainedCpuMillis: 10_000,
}
const LOOK = 100
const MINUTE = 60_000

function watched({ loaded = true } = {}) {
  const kernel = {
    residentBytes: 100 * MEBIBYTE,
    threads: 9,
    processMillis: 0,
    functionsMillis: 0,
    segment: 0,
    sentFrames: 0,
  }
  const runner = {
    get sentFrames() {
      return kernel.sentFrames
    },
    progress: () => ({ call: 0, segment: kernel.segment, spentMicros: 0 }),
    usage: () => ({
      cpuMicros: kernel.functionsMillis * 1000,
      residentBytes: kernel.residentBytes,
    }),
    processCpuMicros: () => kernel.processMillis * 1000,
    threads: () => kernel.threads,
  }
  const calls = { givenBytes: 0, frameCpuMillis: 2_000 }
  const watch = new ProcessWatch(runner as unknown as RunnerProcess, LIMITS, calls)
  if (loaded) watch.markLoaded()
  let now = 0
  /** Looks until the runner's fate is decided or the time is over. */
  const run = (millis: number, isWorking: boolean, each: () => void = () => {}) => {
    for (const start = now; now - start < millis; now += LOOK) {
      each()
      const fate = watch.check(now, isWorking)
      if (fate !== null) return { ...fate, millis: now - start }
    }
    return null
  }
  /** Adds milliseconds of CPU at each sample: of the thread of Functions, and of all others. */
  const use = (functions: number, others: number) => () => {
    kernel.functionsMillis += functions
    kernel.processMillis += functions + others
  }
  return { kernel, calls, run, use }
}

describe('memory', () => {
  test('memory that grows beyond the bound ends a runner without a call', () => {
    const { kernel, run, use } = watched()
    kernel.residentBytes += 512 * MEBIBYTE
    expect(run(MINUTE, false, use(0, 1))).toBeNull()
    kernel.residentBytes += 1
    expect(run(MINUTE, false, use(0, 1))).toEqual({ kind: 'limit', limit: 'memory', millis: 0 })
  })

  test('memory that a runner was sent is not counted', () => {
    const { kernel, calls, run } = watched()
    calls.givenBytes = 64 * MEBIBYTE
    kernel.residentBytes += 550 * MEBIBYTE
    expect(run(MINUTE, true)).toBeNull()
    calls.givenBytes = 0
    expect(run(MINUTE, true)).toMatchObject({ limit: 'memory' })
  })

  test('memory is bounded before a Release is loaded, too', () => {
    const { kernel, run } = watched({ loaded: false })
    expect(run(MINUTE, true)).toBeNull()
    kernel.residentBytes = 513 * MEBIBYTE
    expect(run(MINUTE, true)).toMatchObject({ limit: 'memory' })
  })
})

test('threads beyond the bound end a runner', () => {
  const { kernel, run, use } = watched()
  kernel.threads = 256
  expect(run(MINUTE, false, use(0, 1))).toBeNull()
  kernel.threads = 257
  expect(run(MINUTE, false, use(0, 1))).toMatchObject({
    kind: 'broken',
    detail: 'the runner has 257 threads',
  })
})

describe('CPU', () => {
  test('CPU that a runner takes without a call ends it', () => {
    const { run, use } = watched()
    expect(run(MINUTE, false, use(0, LOOK))).toMatchObject({ kind: 'limit', limit: 'cpu' })
  })

  test('CPU that is hardly measurable never ends a runner, however long it idles', () => {
    const { run, use } = watched()
    expect(run(600 * MINUTE, false, use(0, 0.04 * LOOK))).toBeNull()
  })

  test('the CPU of the collector and the compilers belongs to the calls that run', () => {
    const { kernel, run, use } = watched()
    const call = use(0.5 * LOOK, 4 * LOOK)
    const calls = () => {
      call()
      kernel.sentFrames += 1
      kernel.segment += 1
    }
    expect(run(10 * MINUTE, true, calls)).toBeNull()
  })

  test('the CPU of other threads ends a runner whose call only waits', () => {
    const { run, use } = watched()
    expect(run(MINUTE, true, use(0, 2 * LOOK))).toMatchObject({ limit: 'cpu' })
  })

  test('the CPU of calls that begin and end between two looks belongs to them', () => {
    const { kernel, run, use } = watched()
    const call = use(0.5 * LOOK, 0)
    const calls = () => {
      call()
      kernel.sentFrames += 1
      kernel.segment += 1
    }
    expect(run(10 * MINUTE, false, calls)).toBeNull()
  })

  test('beyond what one frame may take ends a runner that claims to have no call', () => {
    const { run, use } = watched()
    const fate = run(MINUTE, true, use(LOOK, 0))
    expect(fate).toMatchObject({ kind: 'limit', limit: 'cpu' })
    expect(fate!.millis).toBeGreaterThanOrEqual(3_000)
    expect(fate!.millis).toBeLessThanOrEqual(3_000 + 2 * LOOK)
  })

  test('CPU does not count while the Release is loaded', () => {
    const { run, use } = watched({ loaded: false })
    expect(run(MINUTE, true, use(LOOK, 2 * LOOK))).toBeNull()
  })
})

test('a runner that claims more frames than it was sent is terminated', () => {
  const { kernel, run } = watched()
  kernel.sentFrames = 5
  kernel.segment = 5
  expect(run(MINUTE, true)).toBeNull()
  kernel.segment = 6
  expect(run(MINUTE, true)).toMatchObject({ kind: 'broken' })
})
