import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSharedMemory, mapSharedMemory } from '../system/memory/shared-memory.ts'
import { SHARED_BUCKETS_BYTES, SharedBuckets } from './token-buckets.ts'

/** Gains less than one token in a day. */
const SLOW = { perSecond: 0.000_01, burst: 100 }
const NEVER = Number.NEGATIVE_INFINITY

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-buckets-'))
  path = join(directory, 'limits')
})

afterEach(() => {
  rmSync(directory, { recursive: true })
})

test('all processes that map the memory take from one bucket', () => {
  const first = new SharedBuckets(createSharedMemory(path, SHARED_BUCKETS_BYTES), 0)
  const second = new SharedBuckets(mapSharedMemory(path), 0)
  for (let i = 0; i < 100; i++) {
    const before = [first, second][i % 2]!.take('key', SLOW, 1, 1)
    expect(Math.round(before)).toBe(100 - i)
  }
  expect(first.take('key', SLOW, 1, 1)).toBeLessThan(1)
  expect(second.take('key', SLOW, 1, 1)).toBeLessThan(1)
  expect(second.take('another', SLOW, 1, 1)).toBe(100)
})

test('a charge makes a bucket negative down to its burst, and then none is taken', () => {
  const buckets = new SharedBuckets(createSharedMemory(path, SHARED_BUCKETS_BYTES), 0)
  buckets.take('key', SLOW, 150, NEVER)
  expect(Math.round(buckets.take('key', SLOW, 1, 1))).toBe(-50)
  buckets.take('key', SLOW, 1_000, NEVER)
  expect(Math.round(buckets.take('key', SLOW, 0, 1))).toBe(-100)
})

test('limits in one memory have buckets of their own', () => {
  const memory = createSharedMemory(path, 2 * SHARED_BUCKETS_BYTES)
  const [first, second] = [new SharedBuckets(memory, 0), new SharedBuckets(memory, 1)]
  first.take('key', SLOW, 100, 1)
  expect(second.take('key', SLOW, 0, 1)).toBe(100)
})

test('a bucket is filled again at its rate', async () => {
  const fast = { perSecond: 1_000, burst: 10 }
  const buckets = new SharedBuckets(createSharedMemory(path, SHARED_BUCKETS_BYTES), 0)
  buckets.take('key', fast, 10, 1)
  await expect.poll(() => buckets.take('key', fast, 0, 1), { timeout: 60_000 }).toBe(10)
})

test('keys beyond the memory replace those that were used least recently', {
  tags: ['slow'],
}, () => {
  const buckets = new SharedBuckets(createSharedMemory(path, SHARED_BUCKETS_BYTES), 0)
  for (let i = 0; i < 40_000; i++) buckets.take(`peer ${i}`, SLOW, 100, 1)
  expect(buckets.size).toBeLessThanOrEqual(16_384)
  expect(Math.round(buckets.take('peer 39999', SLOW, 0, 1))).toBe(0)
})

test('processes that take at the same time lose no token and take none twice', () => {
  createSharedMemory(path, SHARED_BUCKETS_BYTES)
  const module = (path: string) => JSON.stringify(join(import.meta.dirname, path))
  const source = `
    import { mapSharedMemory } from ${module('../system/memory/shared-memory.ts')}
    import { SharedBuckets } from ${module('token-buckets.ts')}
    const buckets = new SharedBuckets(mapSharedMemory(${JSON.stringify(path)}), 0)
    const limit = { perSecond: 0.00001, burst: 20000 }
    let taken = 0
    for (let i = 0; i < 20000; i++) if (buckets.take('key', limit, 1, 1) >= 1) taken += 1
    console.log(taken)`
  const script = `
    const command = [process.execPath, '-e', ${JSON.stringify(source)}]
    const run = () => Bun.spawn(command, { stdout: 'pipe' })
    const texts = await Promise.all([run(), run(), run()].map((each) => each.stdout.text()))
    console.log(texts.reduce((sum, text) => sum + Number(text), 0))`
  const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
  expect(Number(stdout)).toBe(20_000)
})
