/** The rate of transfers while calls arrive, with the clock and the timers of the test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  BYTES_PER_SECOND_BESIDE_CALLS,
  CALLS_EXPECTED_MILLIS,
  TransferTurns,
} from './transfer-turns.ts'

/** Bytes that take 15.625 ms at the rate. */
const PIECE = BYTES_PER_SECOND_BESIDE_CALLS / 64

let millis = 0
let turns: TransferTurns
beforeEach(() => {
  vi.useFakeTimers()
  millis = 1_000
  turns = new TransferTurns({ monotonicMillis: () => millis })
})
afterEach(() => void vi.useRealTimers())

/** Lets the events that are pending happen. */
async function pending(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}

/** Advances the clock and the timers; with `calls` a call arrives in each millisecond. */
async function pass(passed: number, calls = false): Promise<void> {
  for (let i = 0; i < passed; i++) {
    millis += 1
    if (calls) turns.called(millis)
    await vi.advanceTimersByTimeAsync(1)
    await pending()
  }
}

/** Takes a turn for each piece and returns the numbers of those that have come, in their order. */
function take(...pieces: readonly number[]): number[] {
  const taken: number[] = []
  pieces.forEach((bytes, i) => {
    void turns.take(bytes).then(() => taken.push(i))
  })
  return taken
}

test('uploads wait for nothing but pending events while no call arrives', async () => {
  const taken = take(100 * PIECE, 100 * PIECE)
  expect(taken).toEqual([])
  await pending()
  expect(taken).toEqual([0, 1])
})

test('beside calls the pieces of all uploads follow one another at the rate', async () => {
  turns.called(millis)
  const taken = take(PIECE, PIECE, PIECE)
  await pending()
  expect(taken).toEqual([0])
  await pass(15, true)
  expect(taken).toEqual([0])
  await pass(1, true)
  expect(taken).toEqual([0, 1])
  await pass(15, true)
  expect(taken).toEqual([0, 1])
  await pass(1, true)
  expect(taken).toEqual([0, 1, 2])
})

test('pieces that wait are received at once when calls cease to arrive', async () => {
  turns.called(millis)
  const taken = take(100 * PIECE, 100 * PIECE, 100 * PIECE)
  await pass(100, true)
  expect(taken).toEqual([0])
  await pass(CALLS_EXPECTED_MILLIS - 1)
  expect(taken).toEqual([0])
  await pass(1)
  expect(taken).toEqual([0, 1, 2])
})

test('an upload does not wait for earlier pieces that no call delayed', async () => {
  turns.called(millis)
  take(100 * PIECE, 1)
  await pass(CALLS_EXPECTED_MILLIS)
  turns.called(millis)
  const taken = take(1)
  await pending()
  expect(taken).toEqual([0])
})
