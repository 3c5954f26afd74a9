import { edenGC, fullGC, heapStats } from 'bun:jsc'
import { describe, expect, it } from 'vitest'
import { TransientMap } from './transient-map.ts'

describe('a transient map', () => {
  it('a transient map has the entries and the order of a Map after any changes', {
    tags: ['slow'],
  }, () => {
    const map = new TransientMap<string, number>()
    const model = new Map<string, number>()
    let random = 1
    for (let i = 0; i < 20_000; i++) {
      random = (random * 48_271) % 2_147_483_647
      const key = `k${random % 97}`
      if (random % 5 < 2) {
        map.set(key, i)
        model.set(key, i)
      } else {
        expect(map.delete(key)).toBe(model.delete(key))
      }
      expect([map.get(key), map.has(key)]).toEqual([model.get(key), model.has(key)])
      if (i % 500 === 0) expect([...map]).toEqual([...model])
    }
    expect([...map.values()]).toEqual([...model.values()])
    expect(map.size).toBe(model.size)
    map.clear()
    expect([map.size, ...map]).toEqual([0])
  })

  it('iteration yields each remaining entry while others are deleted', () => {
    const map = new TransientMap<number, number>()
    for (let i = 0; i < 100; i++) map.set(i, i)
    const seen: number[] = []
    for (const [key] of map) {
      seen.push(key)
      if (key % 10 !== 0) map.delete(key)
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_, i) => i))
    expect([...map.values()]).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90])
  })

  it('iteration yields no entry that was deleted before', () => {
    const map = new TransientMap<number, number>()
    for (let i = 0; i < 100; i++) map.set(i, i)
    const seen: number[] = []
    for (const key of map.values()) {
      seen.push(key)
      for (let other = 1; other < 100; other++) map.delete(other)
    }
    expect(seen).toEqual([0])
  })

  it('a transient map leaves no garbage that only a full collection frees', {
    tags: ['slow'],
  }, () => {
    const steps = 20_000
    const map = new TransientMap<number, object>()
    const step = (i: number): void => {
      map.set(i, { of: [i] })
      map.delete(i - 50)
    }
    for (let i = 0; i < 1_000; i++) step(i)
    fullGC()
    const before = heapStats().objectCount
    for (let i = 1_000; i < steps; i++) step(i)
    edenGC()
    // A Map keeps two for each step.
    expect(heapStats().objectCount - before).toBeLessThan(steps / 4)
  })
})
