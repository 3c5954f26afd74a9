/** Permits for tasks, some of which are aborted while they wait. */
import { expect, test } from 'vitest'
import { Semaphore } from './semaphore.ts'

const neverAborted = new AbortController().signal

test('an aborted task stops waiting while all permits are held', async () => {
  const semaphore = new Semaphore(1)
  const order: string[] = []
  const first = Promise.withResolvers<void>()
  const running = semaphore.use(neverAborted, () => first.promise)
  const abort = new AbortController()
  const aborted = semaphore.use(abort.signal, async () => order.push('aborted'))
  const second = semaphore.use(neverAborted, async () => order.push('second'))
  const third = semaphore.use(neverAborted, async () => order.push('third'))
  abort.abort(new RangeError('aborted'))
  await expect(aborted).rejects.toThrow('aborted')
  expect(order).toEqual([])
  first.resolve()
  await Promise.all([running, second, third])
  expect(order).toEqual(['second', 'third'])
})

test('a task that is aborted as it gets its permit passes the permit on', async () => {
  const semaphore = new Semaphore(1)
  const first = Promise.withResolvers<void>()
  const abort = new AbortController()
  const running = semaphore.use(neverAborted, () => first.promise).then(() => abort.abort())
  const aborted = semaphore.use(abort.signal, async () => 'aborted')
  const next = semaphore.use(neverAborted, async () => 'next')
  first.resolve()
  await expect(Promise.allSettled([running, aborted, next])).resolves.toMatchObject([
    { status: 'fulfilled' },
    {},
    { value: 'next' },
  ])
  expect(await semaphore.use(neverAborted, async () => 'another')).toBe('another')
})
