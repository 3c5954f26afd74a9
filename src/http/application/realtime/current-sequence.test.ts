/**
 * Goal: the sequence is never ahead of a subscription, is exact if all are current, advances even
 * if they fall behind repeatedly, and requires no iteration over the subscriptions.
 */
import { expect, test } from 'vitest'
import { SEED } from '../../../../testing/seeds.ts'
import { CurrentSequence, type Tracked } from './current-sequence.ts'

class Subscription implements Tracked {
  reads = 0
  #isCurrent = false
  #currentAt = -1

  get isCurrent(): boolean {
    this.reads += 1
    return this.#isCurrent
  }

  get currentAt(): number {
    this.reads += 1
    return this.#currentAt
  }

  /** The sequence up to which it is current while `durable` is the newest one. */
  at(durable: number): number {
    return this.#isCurrent ? durable : this.#currentAt
  }

  set(isCurrent: boolean, currentAt: number): void {
    this.#isCurrent = isCurrent
    this.#currentAt = currentAt
  }
}

function currentSubscriptions(sequence: CurrentSequence, count: number): Subscription[] {
  return Array.from({ length: count }, () => {
    const subscription = new Subscription()
    subscription.set(true, 0)
    sequence.update(subscription)
    subscription.reads = 0
    return subscription
  })
}

const readsOf = (subscriptions: readonly Subscription[]): number =>
  subscriptions.reduce((sum, { reads }) => sum + reads, 0)

test('the sequence of 1,000 current subscriptions reads none of them', () => {
  const sequence = new CurrentSequence()
  const subscriptions = currentSubscriptions(sequence, 1_000)
  for (let durable = 1; durable <= 100; durable++) expect(sequence.at(durable)).toBe(durable)
  expect(readsOf(subscriptions)).toBe(0)
})

test('1,000 subscriptions that stay behind are read once, not for each ping', () => {
  const sequence = new CurrentSequence()
  const subscriptions = currentSubscriptions(sequence, 1_000)
  for (const each of subscriptions) {
    each.set(false, 0)
    sequence.update(each)
    each.reads = 0
  }
  for (let durable = 1; durable <= 100; durable++) expect(sequence.at(durable)).toBe(0)
  expect(readsOf(subscriptions)).toBe(1_000)
})

test('a subscription without a state leaves no sequence, and one that ends gives it back', () => {
  const sequence = new CurrentSequence()
  currentSubscriptions(sequence, 2)
  expect(sequence.at(5)).toBe(5)
  const late = new Subscription()
  sequence.update(late)
  expect(sequence.at(6)).toBe(-1)
  sequence.remove(late)
  expect(sequence.at(6)).toBe(6)
})

test('a subscription that is behind holds the sequence until it has passed it', () => {
  const sequence = new CurrentSequence()
  const [first] = currentSubscriptions(sequence, 2)
  expect(sequence.at(3)).toBe(3)
  first!.set(false, 3)
  sequence.update(first!)
  expect([sequence.at(4), sequence.at(5)]).toEqual([3, 3])
  first!.set(true, 5)
  sequence.update(first!)
  expect(sequence.at(5)).toBe(5)
})

test('the sequence is never ahead of a subscription and advances while all are behind', () => {
  let random = SEED | 1
  const below = (count: number): number => {
    random = Math.imul(random ^ (random >>> 15), 0x2c1b3c6d) >>> 0
    random ^= random << 7
    return (random >>> 0) % count
  }
  const sequence = new CurrentSequence()
  const subscriptions = currentSubscriptions(sequence, 8)
  let [durable, greatest] = [0, -1]
  for (let step = 0; step < 5_000; step++) {
    durable += below(2)
    const subscription = subscriptions[below(8)]!
    // It fell behind now, or a run has ended since which there were other commits.
    const behindAt = Math.max(subscription.at(durable), durable - below(3))
    const isCurrent = below(3) === 0
    subscription.set(isCurrent, isCurrent ? durable : behindAt)
    sequence.update(subscription)
    const at = sequence.at(durable)
    const least = Math.min(...subscriptions.map((each) => each.at(durable)))
    if (at > least || at < greatest) throw new Error(`${at} at step ${step}, not ${least}`)
    greatest = at
  }
  expect(durable - greatest).toBeLessThan(500)
})
