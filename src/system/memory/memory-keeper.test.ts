import { afterEach, expect, test } from 'vitest'
import { MemoryKeeper } from './memory-keeper.ts'

const MIB = 1024 * 1024
let keeper: MemoryKeeper | null = null
afterEach(() => keeper?.stop())

/** A keeper whose seconds pass by `second(CPU milliseconds of the server, MiB in use)`. */
function keeperBench() {
  const events: string[] = []
  let [now, cpuMicros, mib] = [0, 0, 0]
  const opened = new MemoryKeeper({
    targetBytes: 100 * MIB,
    system: { monotonicMillis: () => now },
    heldBytes: () => mib * MIB,
    cpuMicros: () => cpuMicros,
    collect: (isIdle) => {
      events.push(isIdle ? 'collect idle' : 'collect busy')
      cpuMicros += 80_000
      now += 80
    },
    trimRunners: (withDocuments) => events.push(withDocuments ? 'trim documents' : 'trim'),
    dropCaches: () => events.push('drop'),
  })
  keeper = opened
  const second = (cpuMillis: number, usedMib = 50): readonly string[] => {
    now += 1_000
    cpuMicros += cpuMillis * 1_000
    mib = usedMib
    opened.check()
    return events.splice(0)
  }
  return { second, keeper: opened }
}

test('a server that becomes idle returns memory twice, and again only after work', () => {
  const { second, keeper } = keeperBench()
  expect([second(900), second(900), second(10)]).toEqual([[], [], []])
  const returned = ['trim', 'collect idle']
  expect([second(10), second(10), second(10), second(10)]).toEqual([returned, returned, [], []])
  expect([second(60), second(10)]).toEqual([[], []])
  expect(second(10)).toEqual(returned)
  expect(keeper.collections).toBe(3)
})

test('a server that stays idle for half a minute drops its caches once', () => {
  const { second } = keeperBench()
  second(900)
  for (let i = 0; i < 29; i++) second(10)
  expect([second(10), second(10), second(10)]).toEqual([
    ['drop', 'trim documents', 'collect idle'],
    ['trim', 'collect idle'],
    [],
  ])
  for (let i = 0; i < 60; i++) expect(second(10)).toEqual([])
})

test('a server that works collects above its target, at most every 10 s, without a pause', () => {
  const { second } = keeperBench()
  expect(second(900, 100)).toEqual([])
  expect(second(900, 101)).toEqual(['trim', 'collect busy'])
  for (let i = 0; i < 9; i++) expect(second(900, 101)).toEqual([])
  expect(second(900, 101)).toEqual(['trim', 'collect busy'])
})
