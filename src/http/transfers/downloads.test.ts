/** The number of downloads of long files, and the time that they wait for their readers. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  DOWNLOAD_IDLE_SECONDS,
  DOWNLOADS_MAX,
  Downloads,
  PEER_DOWNLOADS_MAX,
  RATES_MILLIS,
} from './downloads.ts'
import { BYTES_PER_SECOND_BESIDE_CALLS } from './transfer-turns.ts'

const LONG = 64 * 1024 + 1

let millis = 0
let hasCalls: boolean
/** Downloads of other processes. */
let elsewhere: number
const turns = { hasCalls: () => hasCalls, downloads: (own: number) => own + elsewhere }
let downloads: Downloads
beforeEach(() => {
  vi.useFakeTimers()
  millis = 0
  hasCalls = false
  elsewhere = 0
  downloads = new Downloads({ monotonicMillis: () => millis }, turns)
})
afterEach(() => void vi.useRealTimers())

/** Advances the clock and the timers. */
function pass(passed: number): void {
  millis += passed
  vi.advanceTimersByTime(passed)
}

function connection() {
  const times: number[] = []
  const rates: (number | null)[] = []
  const opened = { isDone: false, times }
  return {
    opened,
    times,
    rates,
    setRate: (bytesPerSecond: number | null) => void rates.push(bytesPerSecond),
    isAnswered: () => opened.isDone,
    setTime: (seconds: number) => void times.push(seconds),
  }
}

const send = (peer: string, to = connection(), bytes = LONG) =>
  downloads.send({ peer, bytes }, to, async () => 'sent')
const BUSY = { code: 'BUSY' }

test('one address has a share of the downloads, and a further one is BUSY', async () => {
  for (let i = 0; i < PEER_DOWNLOADS_MAX; i++) await send('one')
  await expect(send('one')).rejects.toMatchObject(BUSY)
  expect(await send('two')).toBe('sent')
  expect(await send('one', connection(), LONG - 1)).toBe('sent')
  expect(downloads.running).toBe(PEER_DOWNLOADS_MAX + 1)
})

test('the downloads of all addresses together have a bound', async () => {
  for (let i = 0; i < DOWNLOADS_MAX; i++) await send(`peer ${Math.floor(i / 100)}`)
  await expect(send('another')).rejects.toMatchObject(BUSY)
})

test('a download that was sent makes room immediately', async () => {
  const first = connection()
  await send('one', first)
  for (let i = 1; i < PEER_DOWNLOADS_MAX; i++) await send('one')
  first.opened.isDone = true
  expect(await send('one')).toBe('sent')
  expect(downloads.running).toBe(PEER_DOWNLOADS_MAX)
})

test('downloads that have ended are released without a further download', async () => {
  const [first, second] = [connection(), connection()]
  await send('one', first)
  await send('one', second)
  first.opened.isDone = true
  pass(1_000)
  expect(downloads.running).toBe(1)
  second.opened.isDone = true
  pass(1_000)
  expect([downloads.running, vi.getTimerCount()]).toEqual([0, 0])
})

test('a download that is not opened holds nothing', async () => {
  const failure = new Error('the bytes are missing')
  const opening = downloads.send({ peer: 'one', bytes: LONG }, connection(), async () => {
    throw failure
  })
  await expect(opening).rejects.toBe(failure)
  expect(downloads.running).toBe(0)
})

test('the idle timeout of a reader is set once, after the start of the file', async () => {
  const reader = connection()
  await send('one', reader)
  expect(reader.times).toEqual([])
  for (let i = 0; i < 5; i++) pass(1_000)
  expect(reader.times).toEqual([DOWNLOAD_IDLE_SECONDS])
})

test('downloads divide the rate beside calls, and have no bound without calls', async () => {
  const [first, second] = [connection(), connection()]
  await send('one', first)
  pass(RATES_MILLIS)
  expect(first.rates).toEqual([])
  hasCalls = true
  pass(RATES_MILLIS)
  expect(first.rates).toEqual([BYTES_PER_SECOND_BESIDE_CALLS])
  await send('two', second)
  const half = BYTES_PER_SECOND_BESIDE_CALLS / 2
  expect([first.rates.at(-1), second.rates]).toEqual([half, [half]])
  pass(10 * RATES_MILLIS)
  expect(first.rates.length).toBe(2)
  hasCalls = false
  pass(RATES_MILLIS)
  expect([first.rates.at(-1), second.rates.at(-1)]).toEqual([null, null])
})

test('the connection of a download that has ended has no bound', async () => {
  const first = connection()
  hasCalls = true
  await send('one', first)
  first.opened.isDone = true
  pass(1_000)
  expect(first.rates.at(-1)).toBeNull()
  expect(vi.getTimerCount()).toBe(0)
})
