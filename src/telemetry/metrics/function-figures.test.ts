/**
 * Goal: figures of Functions are those of the calls, within the stated error and bounds. Method:
 * percentiles are compared with those of the sorted durations, for random durations.
 */
import { expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import {
  addedFigures,
  type CallEnd,
  FIGURES_MILLIS,
  FUNCTIONS_WITH_FIGURES_MAX,
  FunctionFigures,
  LONGEST_MICROS,
  RELATIVE_ERROR,
  SHORTEST_MICROS,
} from './function-figures.ts'

const HOUR = 3_600_000
const A = { releaseId: 'rel_a' }
const B = { releaseId: 'rel_b' }
const LIST = { name: 'notes.list' }
const ADD = { name: 'notes.add' }

const ended = (as: CallEnd, startedMillis: number, nowMillis: number) =>
  ({ as, startedMillis, nowMillis }) as const

const read = (figures: FunctionFigures, releaseId: string, nowMillis: number) =>
  addedFigures([figures.read(releaseId, nowMillis)])

/** Nearest rank. */
function exact(durations: readonly number[], percent: number): number {
  const sorted = durations.toSorted((a, b) => a - b)
  return sorted[Math.ceil((sorted.length * percent) / 100) - 1]!
}

test('percentiles differ from the exact ones by at most the stated relative error', () => {
  expect(RELATIVE_ERROR).toBeLessThan(0.05)
  const micros = fc.oneof(
    fc.double({ min: SHORTEST_MICROS, max: LONGEST_MICROS, noNaN: true }),
    fc.double({ min: SHORTEST_MICROS, max: 100_000, noNaN: true }),
    fc.integer({ min: 1, max: 50 }).map((power) => SHORTEST_MICROS * 1.1 ** power),
  )
  const lists = fc.array(micros, { minLength: 1, maxLength: 300 })
  const property = fc.property(lists, fc.integer({ min: 1, max: 3 }), (durations, processes) => {
    const all = Array.from({ length: processes }, () => new FunctionFigures())
    for (const [i, duration] of durations.entries()) {
      all[i % processes]!.ended(A, LIST, ended('succeeded', HOUR - duration / 1_000, HOUR))
    }
    const [figure, ...others] = addedFigures(all.map((each) => each.read('rel_a', HOUR)))
    expect(others).toEqual([])
    expect(figure!.calls).toBe(durations.length)
    for (const percent of [50, 95, 99] as const) {
      const wanted = exact(durations, percent)
      const error = Math.abs(figure![`p${percent}Micros`]! - wanted) / wanted
      expect(error).toBeLessThanOrEqual(RELATIVE_ERROR + 1e-6)
    }
  })
  fc.assert(property)
})

test('durations beyond the bounds count as the shortest and about the longest', () => {
  const figures = new FunctionFigures()
  figures.ended(A, LIST, ended('succeeded', 10, 10))
  figures.ended(A, LIST, ended('succeeded', 20, 10))
  expect(read(figures, 'rel_a', 10)[0]!.p99Micros).toBe(SHORTEST_MICROS)
  figures.ended(A, ADD, ended('failed', 0, 10 * HOUR))
  const { p50Micros } = read(figures, 'rel_a', 10 * HOUR)[0]!
  expect(Math.abs(p50Micros! - LONGEST_MICROS) / LONGEST_MICROS).toBeLessThan(0.1)
})

test('calls count by their end, by Function and by Release; cached ones have no duration', () => {
  const figures = new FunctionFigures()
  figures.ended(A, LIST, ended('succeeded', 0, 1))
  figures.ended(A, LIST, ended('rejected', 0, 1))
  figures.ended(A, LIST, ended('failed', 0, 1))
  figures.ended(A, LIST, ended('failed', 0, 1))
  figures.cached(A, LIST, 1)
  figures.cached(A, ADD, 1)
  figures.cached(B, LIST, 1)
  const unmeasured = { p50Micros: null, p95Micros: null, p99Micros: null }
  const add = { function: 'notes.add', calls: 1, cached: 1, rejected: 0, failed: 0, ...unmeasured }
  const list = { function: 'notes.list', calls: 5, cached: 1, rejected: 1, failed: 2 }
  expect(read(figures, 'rel_a', 1)).toMatchObject([add, list])
  expect(read(figures, 'rel_b', 1)).toEqual([{ ...add, function: 'notes.list' }])
  expect(read(figures, 'rel_c', 1)).toEqual([])
})

test('a call is forgotten when its hour has passed, also where others follow', () => {
  const figures = new FunctionFigures()
  figures.cached(A, LIST, 0)
  expect(read(figures, 'rel_a', FIGURES_MILLIS - 1)[0]!.calls).toBe(1)
  expect(read(figures, 'rel_a', FIGURES_MILLIS)).toEqual([])
  figures.cached(A, LIST, FIGURES_MILLIS)
  expect(read(figures, 'rel_a', FIGURES_MILLIS)[0]!.calls).toBe(1)
  figures.cached(A, LIST, 2 * FIGURES_MILLIS - 1)
  expect(read(figures, 'rel_a', 2 * FIGURES_MILLIS - 1)[0]!.calls).toBe(2)
})

test('beyond the bound the Function that was unused for the longest time is forgotten', () => {
  const figures = new FunctionFigures()
  const subject = (i: number) => [{ releaseId: `rel_${i % 7}` }, { name: `f${i}` }] as const
  for (let i = 0; i < FUNCTIONS_WITH_FIGURES_MAX; i++) figures.cached(...subject(i), 0)
  for (let i = 0; i < FUNCTIONS_WITH_FIGURES_MAX; i++)
    if (i !== 11) figures.cached(...subject(i), HOUR / 2)
  const isKnown = (i: number) =>
    read(figures, `rel_${i % 7}`, HOUR / 2).some((each) => each.function === `f${i}`)
  expect(isKnown(11)).toBe(true)
  figures.cached(...subject(FUNCTIONS_WITH_FIGURES_MAX), HOUR / 2)
  expect(isKnown(11)).toBe(false)
  expect(isKnown(12)).toBe(true)
  for (let i = 0; i < 5_000; i++) figures.cached({ releaseId: `rel_${i}` }, { name: 'g' }, HOUR)
  const all = Array.from({ length: 5_000 }, (_, i) => read(figures, `rel_${i}`, HOUR).length)
  expect(all.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(FUNCTIONS_WITH_FIGURES_MAX)
})

test('names of properties of every object are names of Functions like others', () => {
  const figures = new FunctionFigures()
  for (const name of ['__proto__', 'constructor', 'toString']) {
    figures.cached({ releaseId: '__proto__' }, { name }, 0)
  }
  const names = read(figures, '__proto__', 0).map((each) => each.function)
  expect(names).toEqual(['__proto__', 'constructor', 'toString'])
})
