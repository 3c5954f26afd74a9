import { expect, test } from 'vitest'
import type { FunctionFiguresReport } from '../../../wire/metrics.ts'
import { figureColumns } from './figure-columns.ts'
import type { FunctionField } from './function-field.ts'

const RELEASE = 'rel_01ARZ3NDEKTSV4RRFFQ69G5FAV' as FunctionFiguresReport['releaseId']
const FIGURE = { kind: 'query', cached: '0', rejected: '0', failed: '0' } as const

function report(functions: FunctionFiguresReport['functions']): FunctionFiguresReport {
  const times = { collectedAtMicros: '2', sinceMicros: '1' }
  return { version: 1, releaseId: RELEASE, ...times, functions }
}

const cells = (figures: FunctionFiguresReport, name: string) =>
  figureColumns(figures).map(({ cell }) => cell({ name } as FunctionField))

test('an older server, an operator without the right and a first load add no columns', () => {
  for (const figures of ['older', 'denied', null] as const) {
    expect(figureColumns(figures)).toEqual([])
  }
})

test('shares are of all calls, and what is not known is a dash', () => {
  const percentiles = { p50Micros: '900', p95Micros: '20500', p99Micros: '2500000' }
  const figures = report([
    { ...FIGURE, ...percentiles, name: 'a', calls: '8', rejected: '1', failed: '8' },
    { ...FIGURE, name: 'b', calls: '1', p50Micros: null, p95Micros: null, p99Micros: null },
  ])
  const shown = ['8', '1 (12.5 %)', '8 (100.0 %)', '900 µs', '20.5 ms', '2.5 s']
  expect(cells(figures, 'a')).toEqual(shown)
  expect(cells(figures, 'b')).toEqual(['1', '0', '0', '–', '–', '–'])
  for (const name of ['c', '__proto__', 'constructor']) {
    expect(cells(figures, name)).toEqual(['–', '–', '–', '–', '–', '–'])
  }
})
