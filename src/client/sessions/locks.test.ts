import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import { pause } from '../pauses.ts'
import { inspect, removeDead, withLock } from './locks.ts'

const system = realSystem()
const never = new AbortController().signal
let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-lock-'))
  path = join(directory, 'x.lock')
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Returns the lock file of this process, which tests change into that of another one. */
async function ownerFile(): Promise<{ [key: string]: unknown }> {
  return withLock(path, system, never, async () => JSON.parse(readFileSync(path, 'utf8')))
}

function leave(owner: object | string, ageSeconds = 0): void {
  writeFileSync(path, typeof owner === 'string' ? owner : JSON.stringify(owner))
  const at = system.nowMillis() / 1000 - ageSeconds
  utimesSync(path, at, at)
}

/** Tells whether the lock is acquired within the time; false if its owner counts as alive. */
async function isGiven(millis = 100_000): Promise<boolean> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), millis)
  try {
    return await withLock(path, system, stop.signal, async () => true)
  } catch (error) {
    expect(isFault(error, 'CLIENT_INTERRUPTED')).toBe(true)
    return false
  } finally {
    clearTimeout(timer)
  }
}

describe('a lock', () => {
  it('a lock has one holder at a time', { tags: ['slow'] }, async () => {
    let [holders, most, runs] = [0, 0, 0]
    const work = async (): Promise<void> => {
      most = Math.max(most, ++holders)
      await pause(system.randomBytes(1)[0]! % 5, never)
      holders--
      runs++
    }
    await Promise.all(Array.from({ length: 40 }, () => withLock(path, system, never, work)))
    expect([most, runs]).toEqual([1, 40])
    expect(readdirSync(directory)).toEqual([])
  })

  it('a lock is released when the work fails', async () => {
    const failing = withLock(path, system, never, () => Promise.reject(new TypeError('no')))
    await expect(failing).rejects.toThrow('no')
    expect(await isGiven()).toBe(true)
  })

  it.each<[string, boolean, object, number]>([
    ['a living process', false, {}, 0],
    ['a living process, for an hour', false, {}, 3_600],
    ['a process that is gone', true, { pid: 2 ** 22 + 1 }, 0],
    ['a later process with the same number', true, { started: '1' }, 0],
    ['a process elsewhere', false, { pidNamespace: 'elsewhere' }, 30],
    ['a process elsewhere that never came back', true, { pidNamespace: 'elsewhere' }, 90],
    ['a process of unknown start', false, { started: null }, 90],
    ['a process of unknown start, for an hour', true, { started: null }, 3_600],
  ])('a lock with %s as its holder is taken over: %s', async (_, given, change, age) => {
    leave({ ...(await ownerFile()), ...change }, age)
    expect(await isGiven(given ? undefined : 300)).toBe(given)
    expect(readdirSync(directory)).toEqual(given ? [] : ['x.lock'])
  })

  it('a lock with a foreign file is taken over when the file is old', {
    tags: ['slow'],
  }, async () => {
    for (const content of ['', '{', '{"nonce":"../../x","pid":1}', 'null']) {
      leave(content, 30)
      expect(await isGiven(300)).toBe(false)
      leave(content, 90)
      expect(await isGiven()).toBe(true)
    }
  })

  it('a lock of a dead process is taken over by exactly one process', {
    tags: ['slow'],
  }, async () => {
    const dead = { ...(await ownerFile()), pid: 2 ** 22 + 1 }
    for (let round = 0; round < 20; round++) {
      leave({ ...dead, nonce: `dead_nonce_${String(round).padStart(5, '0')}` })
      let [holders, most] = [0, 0]
      const heirs = Array.from({ length: 8 }, () =>
        withLock(path, system, never, async () => {
          most = Math.max(most, ++holders)
          await pause(1, never)
          holders--
        }),
      )
      await Promise.all(heirs)
      expect(most).toBe(1)
    }
    expect(readdirSync(directory)).toEqual([])
  })

  it('a lock is kept when a slow process removes the dead holder that it saw before', async () => {
    leave({ ...(await ownerFile()), pid: 2 ** 22 + 1 })
    const seen = inspect(path)!
    await withLock(path, system, never, async () => {
      const held = readFileSync(path, 'utf8')
      removeDead(path, seen, system)
      expect(readFileSync(path, 'utf8')).toBe(held)
    })
    expect(readdirSync(directory)).toEqual([])
  })

  it('a lock is taken over after a process died while it took it over', async () => {
    const dead = { ...(await ownerFile()), pid: 2 ** 22 + 1 }
    const [first, second] = ['A'.repeat(16), 'B'.repeat(16)]
    leave({ ...dead, nonce: first })
    writeFileSync(`${path}.${first}`, JSON.stringify({ ...dead, nonce: second }))
    expect(await isGiven()).toBe(true)
    expect(readdirSync(directory)).toEqual([])
  })
})
