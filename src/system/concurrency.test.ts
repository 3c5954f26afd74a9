import { expect, test } from 'vitest'
import { CoalescingTask, ConcurrencyLimit, SerialQueue, SingleFlight } from './concurrency.ts'

const busy = expect.objectContaining({ code: 'BUSY' })

test('a concurrency limit rejects a further task with its code, until one has ended', async () => {
  const limit = new ConcurrencyLimit(2, 'BUSY')
  const first = Promise.withResolvers<string>()
  const second = Promise.withResolvers<string>()
  const runs = [limit.run(() => first.promise), limit.run(() => second.promise)]
  await expect(limit.run(async () => 'third')).rejects.toEqual(busy)
  first.reject(new RangeError('failed'))
  await expect(runs[0]).rejects.toThrow('failed')
  expect(await limit.run(async () => 'fourth')).toBe('fourth')
  second.resolve('done')
  expect(await runs[1]).toBe('done')
})

test('a serial queue runs tasks in order and bounds only those of callers', async () => {
  const queue = new SerialQueue(2, 'BUSY')
  const first = Promise.withResolvers<void>()
  const started: string[] = []
  const task = (name: string, ended: Promise<void> = Promise.resolve()) => {
    return () => {
      started.push(name)
      return ended
    }
  }
  const runs = [
    queue.run(task('first', first.promise)),
    queue.runUnbounded(task('own')),
    queue.run(task('second')),
  ]
  await expect(queue.run(task('third'))).rejects.toEqual(busy)
  expect(started).toEqual(['first'])
  first.reject(new RangeError('failed'))
  expect((await Promise.allSettled(runs)).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
  ])
  expect(started).toEqual(['first', 'own', 'second'])
})

test('a single flight loads once for each key and again after a failure', async () => {
  const flight = new SingleFlight<number, string>()
  let loads = 0
  const load = async () => `load ${++loads}`
  const fail = () => Promise.reject(new RangeError('failed'))
  const shared = await Promise.all([flight.get(1, load), flight.get(1, load)])
  expect([...shared, await flight.get(1, load)]).toEqual(['load 1', 'load 1', 'load 1'])
  await expect(flight.get(2, fail)).rejects.toThrow('failed')
  expect(await flight.get(2, load)).toBe('load 2')
  expect(await flight.get(1, load)).toBe('load 3')
})

test('a coalescing task runs once more for all requests during a run that fails', async () => {
  const failures: unknown[] = []
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let runs = 0
  const task = new CoalescingTask(
    () => gates[runs++]!.promise,
    (error) => failures.push(error),
  )
  for (let i = 0; i < 3; i++) task.start()
  expect(runs).toBe(1)
  const failure = new RangeError('failed')
  gates[0]!.reject(failure)
  await expect.poll(() => runs).toBe(2)
  expect(failures).toEqual([failure])
  const closed = task.close()
  task.start()
  gates[1]!.resolve()
  await closed
  await task.whenIdle()
  expect([runs, task.isClosed]).toEqual([2, true])
})
