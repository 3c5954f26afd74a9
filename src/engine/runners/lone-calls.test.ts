/** The decisions of a thread that looks each 25 ms, with figures given by the test. */
import { expect, test } from 'vitest'
import { LoneCalls, type PlacedRunner } from './lone-calls.ts'

const TICK = 25

class TestRunner implements PlacedRunner {
  calls = 0
  cpuShare = 0
  isShared = false
  readonly watch: PlacedRunner['watch'] = this
  readonly process: PlacedRunner['process'] = this

  takeMostCalls(): number {
    return this.calls
  }

  shareProcessor(shares: boolean): void {
    this.isShared = shares
  }
}

function placed() {
  const runners = [new TestRunner(), new TestRunner()] as const
  let micros = 0
  let now = 0
  const loneCalls = new LoneCalls(() => micros)
  /** Passes one tick in which the thread used this share of a CPU. */
  const tick = (ownShare = 0.5) => {
    now += TICK
    micros += ownShare * TICK * 1000
    loneCalls.tick(runners, now)
    return runners.map(({ isShared }) => isShared)
  }
  return { runners, tick }
}

test('only the runner of the only call shares the processor', () => {
  const { runners, tick } = placed()
  runners[1].calls = 1
  expect(tick()).toEqual([false, true])
  runners[1].calls = 0
  runners[0].calls = 1
  expect(tick()).toEqual([true, false])
})

test('no runner shares it once two calls are in flight, in one runner or in two', () => {
  const { runners, tick } = placed()
  for (const calls of [
    [2, 0],
    [1, 1],
  ] as const) {
    ;[runners[0].calls, runners[1].calls] = [1, 0]
    expect(tick()).toEqual([true, false])
    ;[runners[0].calls, runners[1].calls] = calls
    expect(tick()).toEqual([false, false])
  }
})

test('a runner without calls stays where it is', () => {
  const { runners, tick } = placed()
  runners[0].calls = 1
  tick()
  runners[0].calls = 0
  expect(tick(1)).toEqual([true, false])
})

test('a runner does not share a processor that the thread needs itself', () => {
  const { runners, tick } = placed()
  runners[0].calls = 1
  expect(tick(0.79)).toEqual([true, false])
  expect(tick(0.81)).toEqual([false, false])
})

test('a runner does not share it while its Functions compute', () => {
  const { runners, tick } = placed()
  runners[0].calls = 1
  runners[0].cpuShare = 0.51
  expect(tick()).toEqual([false, false])
  runners[0].cpuShare = 0.49
  expect(tick()).toEqual([true, false])
})
