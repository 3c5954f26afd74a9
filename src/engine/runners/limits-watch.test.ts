/** The bounds as a clock and the kernel's figures would show them, 25 ms at a time. */
import { describe, expect, test } from 'vitest'
import type { ProgressRecord, RunnerProcess } from '../../runner/processes.ts'
import { LOADING } from '../../runner/protocol/messages.ts'
import { RunnerWatch } from './limits-watch.ts'

const MEBIBYTE = 1024 * 1024
const LIMITS = {
  callCpuMillis: 1_000,
  loadCpuMillis: 2_000,
  callGrowthBytes: 64 * MEBIBYTE,
  runnerGrowthBytes: 256 * MEBIBYTE,
  processGrowthBytes: 512 * MEBIBYTE,
  processThreads: 256,
  unexplainedCpuMillis: 10_000,
}
const TICK = 25

class FakeRunner {
  record: ProgressRecord = { call: 0, segment: 0, spentMicros: 0 }
  cpuMicros: number | null = 0
  residentBytes = 50 * MEBIBYTE
  sentBytes = 0
  sentFrames = 0
  isKilled = false
  runnable = false

  isRunnable(): boolean {
    return this.runnable
  }

  kill(): void {
    this.isKilled = true
  }

  processCpuMicros(): null {
    return null
  }

  threads(): number {
    return 0
  }

  isContained(): null {
    return null
  }

  progress(): ProgressRecord {
    return this.record
  }

  usage() {
    return { cpuMicros: this.cpuMicros, residentBytes: this.residentBytes }
  }
}

function watched() {
  const runner = new FakeRunner()
  const watch = new RunnerWatch(runner as unknown as RunnerProcess, LIMITS)
  watch.markLoaded()
  let now = 0
  /** Ticks until a limit is exceeded; milliseconds that it took. */
  const run = (millisMax: number, each: (millis: number) => void) => {
    for (const start = now; now - start < millisMax; now += TICK) {
      each(TICK)
      const excess = watch.checkLimits(now)
      if (excess !== null) return { ...excess, millis: now - start }
    }
    return null
  }
  return { runner, watch, run }
}

describe('CPU', () => {
  test('a call that spins is found within two looks of the bound', () => {
    const { runner, run } = watched()
    runner.record = { call: 7, segment: 1, spentMicros: 0 }
    const found = run(5_000, (millis) => {
      runner.cpuMicros! += millis * 1000
    })
    expect(found).toMatchObject({ call: 7, limit: 'cpu' })
    expect(found!.millis).toBeLessThanOrEqual(1_000 + 2 * TICK)
  })

  test('a call that waits for a CPU is not limited by elapsed time', () => {
    const { runner, run } = watched()
    runner.record = { call: 7, segment: 1, spentMicros: 0 }
    const tenth = run(9_000, (millis) => {
      runner.cpuMicros! += millis * 100
    })
    expect(tenth).toBeNull()
  })

  test('time that passes is the measure where the kernel shows no CPU', () => {
    const { runner, run } = watched()
    runner.cpuMicros = null
    runner.record = { call: 7, segment: 1, spentMicros: 0 }
    expect(run(5_000, () => {})).toMatchObject({ call: 7, limit: 'cpu' })
  })

  test('what a call took in earlier segments counts', () => {
    const { runner, run } = watched()
    runner.record = { call: 7, segment: 9, spentMicros: 900_000 }
    const found = run(5_000, (millis) => {
      runner.cpuMicros! += millis * 1000
    })
    expect(found!.millis).toBeLessThanOrEqual(100 + 2 * TICK)
  })

  test('many short segments exceed no limit here', () => {
    const { runner, run } = watched()
    let segment = 0
    const found = run(5_000, (millis) => {
      runner.cpuMicros! += millis * 1000
      segment += 1
      runner.record = { call: segment % 64, segment, spentMicros: 0 }
    })
    expect(found).toBeNull()
  })

  test.each([Number.NaN, -1e12, Number.NEGATIVE_INFINITY])(
    'a record that claims %d microseconds wins no time',
    (spentMicros) => {
      const { runner, run } = watched()
      runner.record = { call: 7, segment: 1, spentMicros }
      const found = run(5_000, (millis) => {
        runner.cpuMicros! += millis * 1000
      })
      expect(found).toMatchObject({ call: 7, limit: 'cpu' })
    },
  )

  test('loading may take longer than a call', () => {
    const { runner, run } = watched()
    runner.record = { call: LOADING, segment: 1, spentMicros: 0 }
    const found = run(5_000, (millis) => {
      runner.cpuMicros! += millis * 1000
    })
    expect(found!.millis).toBeGreaterThan(1_900)
  })
})

describe('memory', () => {
  test('a call that grows is found at the look after the bound', () => {
    const { runner, run } = watched()
    runner.record = { call: 7, segment: 1, spentMicros: 0 }
    const found = run(5_000, () => {
      runner.residentBytes += 10 * MEBIBYTE
    })
    expect(found).toEqual({ call: 7, limit: 'memory', millis: 6 * TICK })
  })

  test('growth between two looks counts against the call that is seen', () => {
    const { runner, run } = watched()
    runner.record = { call: 7, segment: 1, spentMicros: 0 }
    runner.residentBytes += 100 * MEBIBYTE
    expect(run(5_000, () => {})).toEqual({ call: 7, limit: 'memory', millis: 0 })
  })

  test('growth of several calls between two looks is not held against the last one', () => {
    const { runner, run } = watched()
    runner.record = { call: 4, segment: 1, spentMicros: 0 }
    expect(run(TICK, () => {})).toBeNull()
    // The first call continues after the look, three end, and a fifth is seen.
    runner.record = { call: 8, segment: 5, spentMicros: 0 }
    runner.residentBytes += 4 * 50 * MEBIBYTE
    expect(run(10 * TICK, () => {})).toBeNull()
    runner.record = { call: 0, segment: 5, spentMicros: 0 }
    run(2 * TICK, () => {})
    runner.residentBytes -= 100 * MEBIBYTE
    run(2 * TICK, () => {})
    runner.record = { call: 9, segment: 6, spentMicros: 0 }
    runner.residentBytes += 65 * MEBIBYTE
    expect(run(TICK, () => {})).toMatchObject({ call: 9, limit: 'memory' })
  })

  test('several calls between two looks cannot grow by more than all of them may', () => {
    const { runner, run } = watched()
    run(TICK, () => {})
    runner.record = { call: 8, segment: 2, spentMicros: 0 }
    runner.residentBytes += 129 * MEBIBYTE
    expect(run(TICK, () => {})).toMatchObject({ call: 8, limit: 'memory' })
  })

  test('what a call was sent is not held against it', () => {
    const { runner, run } = watched()
    runner.record = { call: 7, segment: 1, spentMicros: 0 }
    const read = () => {
      runner.sentBytes += 5 * MEBIBYTE
      runner.residentBytes += 15 * MEBIBYTE
    }
    expect(run(10 * TICK, read)).toBeNull()
    const eat = () => {
      runner.residentBytes += 15 * MEBIBYTE
    }
    expect(run(10 * TICK, eat)).toMatchObject({ limit: 'memory' })
  })

  test('what a call was sent is not held against it where it is worked some looks later', () => {
    const { runner, run } = watched()
    runner.record = { call: 0, segment: 4, spentMicros: 0 }
    runner.sentFrames = 4
    run(3 * TICK, () => {})
    runner.sentFrames += 2
    runner.sentBytes += 22 * MEBIBYTE
    // It works the one before it, then reads it, and is pushed off the processor.
    runner.record = { call: 3, segment: 5, spentMicros: 0 }
    run(2 * TICK, () => {})
    runner.record = { call: 0, segment: 5, spentMicros: 0 }
    run(3 * TICK, () => {})
    runner.record = { call: 7, segment: 6, spentMicros: 0 }
    const grow = () => {
      runner.residentBytes += 20 * MEBIBYTE
    }
    expect(run(7 * TICK, grow)).toBeNull()
    // From the next call on, what was sent has been worked, and allows no growth.
    runner.record = { call: 0, segment: 6, spentMicros: 0 }
    run(2 * TICK, () => {})
    runner.record = { call: 7, segment: 7, spentMicros: 0 }
    expect(run(5 * TICK, grow)).toMatchObject({ call: 7, limit: 'memory' })
  })

  test('slow growth over many calls is replaced, not punished, until it is far too much', () => {
    const { runner, watch, run } = watched()
    let segment = 0
    const step = () => {
      runner.residentBytes += 4 * MEBIBYTE
      segment += 1
      runner.record = { call: 3, segment, spentMicros: 0 }
    }
    expect(run(60 * TICK, step)).toBeNull()
    expect(watch.grownBytes).toBe(240 * MEBIBYTE)
    expect(run(10 * TICK, step)).toMatchObject({ call: 3, limit: 'memory' })
  })

  test('a process that died by itself died of memory only where it had grown', () => {
    const { watch } = watched()
    expect(watch.diedOfMemory(100 * MEBIBYTE)).toBe(false)
    expect(watch.diedOfMemory(200 * MEBIBYTE)).toBe(true)
    expect(watch.diedOfMemory(null)).toBe(false)
  })

  test('what it held at the last look, or at an earlier one, is not what it died of', () => {
    const { runner, watch, run } = watched()
    let segment = 0
    run(20 * TICK, () => {
      segment += 1
      runner.record = { call: 3, segment, spentMicros: 0 }
      runner.residentBytes += 5 * MEBIBYTE
    })
    expect(watch.diedOfMemory(150 * MEBIBYTE)).toBe(false)
    expect(watch.diedOfMemory(160 * MEBIBYTE)).toBe(false)
    expect(watch.diedOfMemory(250 * MEBIBYTE)).toBe(true)
  })
})

describe('a process that was stopped', () => {
  const stoppedAfter = (each: (runner: FakeRunner, millis: number) => void) => {
    const { runner, watch } = watched()
    for (let now = 0; now < 10_000; now += TICK) {
      each(runner, now)
      watch.checkProcess(now, true)
      if (runner.isKilled) return now
    }
    return null
  }

  test('a stopped process is found by unprocessed frames and no CPU time', () => {
    const found = stoppedAfter((runner) => {
      runner.sentFrames = 1
    })
    expect(found).toBeGreaterThan(3_000)
    expect(found).toBeLessThanOrEqual(3_000 + 2 * TICK)
  })

  test('a process that waits, computes, processes frames or has no figures is not stopped', () => {
    const idle = stoppedAfter((runner) => {
      runner.sentFrames = 4
      runner.record = { call: 0, segment: 4, spentMicros: 0 }
    })
    const slow = stoppedAfter((runner, now) => {
      runner.sentFrames = 1
      runner.cpuMicros = Math.floor(now / 2_000)
    })
    const busy = stoppedAfter((runner, now) => {
      runner.sentFrames = 10
      runner.record = { call: 0, segment: Math.floor(now / 2_000), spentMicros: 0 }
    })
    const unknown = stoppedAfter((runner) => {
      runner.sentFrames = 1
      runner.cpuMicros = null
    })
    const starved = stoppedAfter((runner) => {
      runner.sentFrames = 1
      runner.runnable = true
    })
    expect([idle, slow, busy, unknown, starved]).toEqual([null, null, null, null, null])
  })
})
