import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TransferPace } from './transfer-pace.ts'

const BYTES_PER_SECOND = 16 * 1024

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function watched(bytes = 0) {
  const slow = vi.fn()
  return { slow, transfer: new TransferPace().begin(slow, bytes) }
}

test('a transfer without progress is ended once, after the grace period', () => {
  const { slow } = watched()
  vi.advanceTimersByTime(5_000)
  expect(slow).not.toHaveBeenCalled()
  vi.advanceTimersByTime(10_000)
  expect(slow).toHaveBeenCalledOnce()
})

test('a transfer at the minimum rate is never ended', () => {
  const { slow, transfer } = watched()
  for (let second = 0; second < 100; second++) {
    vi.advanceTimersByTime(1_000)
    transfer.moved(BYTES_PER_SECOND)
    transfer.wait()
  }
  expect(slow).not.toHaveBeenCalled()
})

test('a transfer at half of the minimum rate is ended, however fast it began', () => {
  const { slow, transfer } = watched()
  transfer.moved(1_000 * BYTES_PER_SECOND)
  transfer.wait()
  for (let second = 0; second < 12; second++) {
    vi.advanceTimersByTime(1_000)
    transfer.moved(BYTES_PER_SECOND / 2)
    transfer.wait()
  }
  expect(slow).toHaveBeenCalledOnce()
})

test('time in which the server does not wait for the peer is not counted', () => {
  const { slow, transfer } = watched()
  transfer.moved(1)
  vi.advanceTimersByTime(60_000)
  expect(slow).not.toHaveBeenCalled()
})

test('bytes reported together extend the transfer by the time that they need', () => {
  const { slow } = watched(10 * BYTES_PER_SECOND)
  vi.advanceTimersByTime(15_000)
  expect(slow).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1_000)
  expect(slow).toHaveBeenCalledOnce()
})

test('a transfer that has ended is no longer watched', () => {
  const { slow, transfer } = watched()
  transfer.end()
  vi.advanceTimersByTime(60_000)
  expect(slow).not.toHaveBeenCalled()
  expect(vi.getTimerCount()).toBe(0)
})

test('work in time keeps its result, and slow work fails with the given error', async () => {
  const pace = new TransferPace()
  const slow = () => new Error('slow')
  expect(await pace.limit(Promise.resolve(1), 0, slow)).toBe(1)
  await expect(pace.limit(Promise.reject(new Error('gone')), 0, slow)).rejects.toThrow('gone')
  const never = pace.limit(new Promise(() => undefined), 0, slow)
  never.catch(() => undefined)
  vi.advanceTimersByTime(6_000)
  await expect(never).rejects.toThrow('slow')
})
