import { expect, test } from 'vitest'
import { nextTurn } from '../../../system/event-loop.ts'
import { Deliveries, type Receiver } from './delivery-slices.ts'

/** Receivers that take this many milliseconds each. */
function receivers(millis: number) {
  let now = 0
  const sent: string[] = []
  const deliveries = new Deliveries({ monotonicMillis: () => now })
  const receiver = (name: string): Receiver => ({
    deliver: () => {
      sent.push(name)
      now += millis
    },
  })
  return { sent, deliveries, receiver }
}

test('states of many connections are sent in slices, with other events between them', async () => {
  const { sent, deliveries, receiver } = receivers(0.5)
  for (const name of ['a', 'b', 'c', 'd', 'e']) deliveries.add(receiver(name))
  await nextTurn()
  expect(sent).toEqual(['a', 'b'])
  await nextTurn()
  expect(sent).toEqual(['a', 'b', 'c', 'd'])
  await nextTurn()
  expect(sent).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('a state is sent once, after the answers that are ready', async () => {
  const { sent, deliveries, receiver } = receivers(0)
  const one = receiver('state')
  deliveries.add(one)
  deliveries.add(one)
  await Promise.resolve().then(() => sent.push('answer'))
  expect(sent).toEqual(['answer'])
  await nextTurn()
  deliveries.add(one)
  await nextTurn()
  expect(sent).toEqual(['answer', 'state', 'state'])
})

test('a connection that has ended gets no state', async () => {
  const { sent, deliveries, receiver } = receivers(0)
  const [ended, open] = [receiver('ended'), receiver('open')]
  deliveries.add(ended)
  deliveries.add(open)
  deliveries.remove(ended)
  await nextTurn()
  expect(sent).toEqual(['open'])
})
