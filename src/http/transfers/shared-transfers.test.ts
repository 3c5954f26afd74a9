import { expect, test } from 'vitest'
import { SHARED_TRANSFERS_BYTES, SharedTransferState } from './shared-transfers.ts'

function open() {
  const memory = new BigInt64Array(SHARED_TRANSFERS_BYTES / 8)
  const clock = { micros: 1_800_000_000_000_000 }
  const process = (number: number) => new SharedTransferState(memory, number, () => clock.micros)
  return { clock, process, memory }
}

test('a call of one process is a call for the others', () => {
  const { clock, process } = open()
  const [one, other] = [process(1), process(2)]
  expect(other.sinceCall()).toBeGreaterThan(1e9)
  one.called()
  clock.micros += 5_000
  expect(other.sinceCall()).toBe(5)
  other.called()
  expect(one.sinceCall()).toBe(0)
})

test('the pieces of all processes follow one another', () => {
  const { clock, process } = open()
  const [one, other] = [process(1), process(2)]
  expect(one.reserve(0, 1)).toBe(0)
  expect(other.reserve(0, 1)).toBe(1)
  expect(one.reserve(0, 0.5)).toBe(2)
  clock.micros += 1_000
  expect(other.reserve(0, 1)).toBe(1.5)
  other.clear()
  expect(one.reserve(0, 1)).toBe(0)
})

test('a clock that was set back holds no piece back', () => {
  const { clock, process } = open()
  const state = process(1)
  state.reserve(0, 1)
  state.called()
  clock.micros -= 3_600_000_000
  expect(state.reserve(0, 1)).toBe(0)
  expect(state.reserve(0, 1)).toBe(1)
  // No call has arrived in the last milliseconds.
  expect(state.sinceCall()).toBeGreaterThan(1_000)
  state.called()
  expect(state.sinceCall()).toBe(0)
})

test('downloads are those of all processes, without those of one that has ended', () => {
  const { process } = open()
  const [one, other] = [process(1), process(2)]
  expect(one.downloads(3)).toBe(3)
  expect(other.downloads(2)).toBe(5)
  // The process with number 1 is replaced.
  const next = process(1)
  expect(other.downloads(2)).toBe(2)
  expect(next.downloads(1)).toBe(3)
})
