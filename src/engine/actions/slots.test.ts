/** Turns of work that is wanted, and of work that nobody wants any more. */
import { expect, test } from 'vitest'
import { Slots } from './slots.ts'

const forever = new AbortController().signal

test('work that is no longer wanted leaves its place while all others are taken', async () => {
  const slots = new Slots(1)
  const order: string[] = []
  const first = Promise.withResolvers<void>()
  const working = slots.use(forever, () => first.promise)
  const abort = new AbortController()
  const left = slots.use(abort.signal, async () => order.push('left'))
  const stays = slots.use(forever, async () => order.push('stays'))
  const last = slots.use(forever, async () => order.push('last'))
  abort.abort(new RangeError('unwanted'))
  await expect(left).rejects.toThrow('unwanted')
  expect(order).toEqual([])
  first.resolve()
  await Promise.all([working, stays, last])
  expect(order).toEqual(['stays', 'last'])
})

test('work whose turn comes in the moment in which it is not wanted passes it on', async () => {
  const slots = new Slots(1)
  const first = Promise.withResolvers<void>()
  const abort = new AbortController()
  const working = slots.use(forever, () => first.promise).then(() => abort.abort())
  const unwanted = slots.use(abort.signal, async () => 'unwanted')
  const wanted = slots.use(forever, async () => 'wanted')
  first.resolve()
  await expect(Promise.allSettled([working, unwanted, wanted])).resolves.toMatchObject([
    { status: 'fulfilled' },
    {},
    { value: 'wanted' },
  ])
  expect(await slots.use(forever, async () => 'again')).toBe('again')
})
