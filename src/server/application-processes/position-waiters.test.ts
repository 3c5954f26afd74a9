import { expect, test } from 'vitest'
import { PositionWaiters } from './position-waiters.ts'

function opened() {
  const answered = { durable: 5, control: 2, served: 1 }
  const followed = { durable: 5, control: 2, served: 1 }
  const waiters = new PositionWaiters(
    () => answered,
    () => followed,
  )
  const resolved: string[] = []
  const wait = (name: string) => void waiters.whenCurrent().then(() => resolved.push(name))
  return { answered, followed, waiters, wait, resolved }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a process that has followed everything waits for nothing', async () => {
  const { waiters, wait, resolved } = opened()
  expect(waiters.isCurrent).toBe(true)
  wait('first')
  await turn()
  expect(resolved).toEqual(['first'])
})

test('each waits for what was answered when it arrived, and for nothing newer', async () => {
  const { answered, followed, waiters, wait, resolved } = opened()
  answered.durable = 6
  wait('sixth')
  answered.durable = 7
  wait('seventh')
  answered.durable = 8
  followed.durable = 6
  waiters.advance()
  await turn()
  expect([resolved, waiters.isCurrent]).toEqual([['sixth'], false])
  followed.durable = 7
  waiters.advance()
  await turn()
  expect(resolved).toEqual(['sixth', 'seventh'])
})

test.each(['control', 'served'] as const)(
  'a commit does not stand for a change of %s',
  async (kind) => {
    const { answered, followed, waiters, wait, resolved } = opened()
    answered[kind] = 3
    wait('changed')
    followed.durable = 9
    waiters.advance()
    await turn()
    expect([resolved, waiters.isCurrent]).toEqual([[], false])
    followed[kind] = 3
    waiters.advance()
    await turn()
    expect([resolved, waiters.isCurrent]).toEqual([['changed'], true])
  },
)
