import { expect, test } from 'vitest'
import { BatchLoader } from './batch-loader.ts'

test('keys of one event-loop turn are loaded together, and each gets its own value', async () => {
  const batches: number[][] = []
  const loader = new BatchLoader<number, string>(async (keys) => {
    batches.push([...keys])
    return keys.map((key) => `value ${key}`)
  })
  const values = await Promise.all([1, 2, 3].map((key) => loader.load(key)))
  expect(values).toEqual(['value 1', 'value 2', 'value 3'])
  expect(await loader.load(4)).toBe('value 4')
  expect(batches).toEqual([[1, 2, 3], [4]])
})

test('further keys are collected while three statements are running', async () => {
  const running: { count: number; finish: () => void }[] = []
  const loader = new BatchLoader<number, number>(async (keys) => {
    await new Promise<void>((finish) => running.push({ count: keys.length, finish }))
    return keys
  })
  const values: Promise<number>[] = []
  for (let key = 0; key < 10; key++) {
    values.push(loader.load(key))
    await new Promise(setImmediate)
    await new Promise(setImmediate)
  }
  expect(running.map(({ count }) => count)).toEqual([1, 1, 1])
  running[0]!.finish()
  await expect.poll(() => running.length).toBe(4)
  expect(running[3]!.count).toBe(7)
  for (const { finish } of running) finish()
  expect(await Promise.all(values)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('a statement that fails rejects its keys, and later keys are loaded', async () => {
  let isFailing = true
  const loader = new BatchLoader<number, number>(async (keys) => {
    if (isFailing) throw new Error('lost')
    return keys
  })
  const outcomes = await Promise.allSettled([loader.load(1), loader.load(2)])
  expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
  isFailing = false
  expect(await loader.load(3)).toBe(3)
})
