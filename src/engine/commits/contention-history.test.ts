import { expect, test } from 'vitest'
import { ContentionHistory } from './contention-history.ts'

function historyAt(start: number) {
  const clock = { now: start }
  return { clock, history: new ContentionHistory({ monotonicMillis: () => clock.now }) }
}

test('a lost conflict counts for its Function and its keys alone', () => {
  const { history } = historyAt(0)
  expect(history.isEmpty).toBe(true)
  history.add('f.pay', ['accounts_1', '2:key'])
  expect(history.isEmpty).toBe(false)
  expect(['accounts_1', '2:key', 'accounts_2'].map((key) => history.has('f.pay', key))).toEqual([
    true,
    true,
    false,
  ])
  expect(history.has('f.read', 'accounts_1')).toBe(false)
})

test('a conflict is forgotten a second after the last one', () => {
  const { clock, history } = historyAt(5_000)
  history.add('f.pay', ['a'])
  history.add('f.pay', ['b'])
  clock.now += 600
  history.add('f.pay', ['a'])
  clock.now += 399
  expect(history.has('f.pay', 'b')).toBe(true)
  clock.now += 1
  expect(history.has('f.pay', 'b')).toBe(false)
  expect(history.has('f.pay', 'a')).toBe(true)
  expect(history.isEmpty).toBe(false)
  clock.now += 600
  expect(history.has('f.pay', 'a')).toBe(false)
  expect(history.isEmpty).toBe(true)
})

test('the history remembers the newest 1,024 pairs', () => {
  const { history } = historyAt(0)
  for (let i = 0; i < 3_000; i++) history.add('f.pay', [`accounts_${i}`])
  const kept = Array.from({ length: 3_000 }, (_, i) => history.has('f.pay', `accounts_${i}`))
  expect(kept.filter(Boolean)).toHaveLength(1_024)
  expect(kept.slice(-1_024).every(Boolean)).toBe(true)
})
