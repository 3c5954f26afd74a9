/** The log after its writer thread has ended. */
import { afterEach, expect, test } from 'vitest'
import { openTestLogs, type TestLogs } from '../../../testing/logs.ts'
import { createLogWorker, LOG_THREAD_RESTARTS_MAX } from '../../storage/logs/log-thread.ts'

let opened: TestLogs
afterEach(() => opened.dispose())

async function openWithWorkers() {
  const workers: Worker[] = []
  const createWorker = () => {
    const worker = createLogWorker()
    workers.push(worker)
    return worker
  }
  opened = await openTestLogs({ createWorker })
  return workers
}

async function endThread(workers: readonly Worker[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  workers.at(-1)!.addEventListener('close', resolve)
  workers.at(-1)!.terminate()
  await promise
}

const health = async () => (await opened.logs.health()).status

test('a thread that ends is started again, and its records are written or counted', async () => {
  const workers = await openWithWorkers()
  const count = 4_000
  for (let i = 0; i < count; i++) opened.log.info('test.event', { message: `m${i}` })
  const flushed = opened.store.flushed()
  await endThread(workers)
  await flushed
  opened.log.info('test.event', { message: 'after' })
  await opened.store.flushed()
  opened.system.advance(1_000)
  await opened.store.flushed()
  const written: string[] = []
  let dropped = 0
  let after = opened.logs.cursor(0)
  for (;;) {
    const { items, next } = await opened.logs.page({ after }, 500)
    for (const { event, message, fields } of items) {
      if (event === 'log.dropped') dropped += Number(fields!.dropped)
      else written.push(message)
    }
    if (next === null) break
    after = next
  }
  expect(new Set(written).size).toBe(written.length)
  expect(written.length + dropped).toBe(count + 1)
  expect(written.at(-1)).toBe('after')
  expect([workers.length, opened.degraded]).toEqual([2, ['restarted']])
  expect(await health()).toBe('healthy')
})

test('a batch that was written before its thread ended is not counted as dropped', async () => {
  const workers = await openWithWorkers()
  const [worker] = workers
  // The reply to the batch gets lost with the thread.
  worker!.onmessage = () => worker!.terminate()
  opened.log.info('test.event', { message: 'one' })
  await opened.store.flushed()
  opened.system.advance(1_000)
  opened.log.info('test.event', { message: 'two' })
  await opened.store.flushed()
  const { items } = await opened.logs.page({}, 10)
  expect(items.map(({ message }) => message)).toEqual(['one', 'two'])
  expect(workers).toHaveLength(2)
})

test('a batch that its thread did not write is counted as dropped', async () => {
  const workers = await openWithWorkers()
  const [worker] = workers
  // The thread ends instead of writing the batch.
  worker!.postMessage = () => worker!.terminate()
  for (const message of ['one', 'two']) opened.log.info('test.event', { message })
  await opened.store.flushed()
  opened.system.advance(1_000)
  opened.log.info('test.event', { message: 'three' })
  await opened.store.flushed()
  const { items } = await opened.logs.page({}, 10)
  expect(items).toMatchObject([
    { event: 'log.dropped', fields: { dropped: 2, notWritten: 2 } },
    { message: 'three' },
  ])
})

test('the log is unavailable once its thread ended too often, and can still be read', async () => {
  const workers = await openWithWorkers()
  opened.log.info('test.event', { message: 'before' })
  await opened.store.flushed()
  for (let i = 0; i < LOG_THREAD_RESTARTS_MAX; i++) {
    await endThread(workers)
    expect(await health()).toBe('healthy')
  }
  await endThread(workers)
  expect(await health()).toBe('unavailable')
  expect([workers.length, opened.degraded.at(-1)]).toEqual([6, 'stopped'])
  opened.log.info('test.event', { message: 'lost' })
  await opened.store.flushed()
  const { items } = await opened.logs.page({}, 10)
  expect(items.map(({ message }) => message)).toEqual(['before'])
})
