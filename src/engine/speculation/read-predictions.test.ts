import { describe, expect, test } from 'vitest'
import type { RangeRequest } from '../../runner/protocol/operations.ts'
import { ObservedReads, ReadPredictions } from './read-predictions.ts'

const int = (value: number) => ({ $i: String(value) })

function rangeOf(equal: readonly unknown[], rest: Partial<RangeRequest> = {}): RangeRequest {
  return {
    table: 'accounts',
    index: 'byNumber',
    equal,
    order: 'asc',
    limit: 1,
    next: 'none',
    ...rest,
  }
}

type Given = Readonly<Record<string, unknown>>

/** Lets the predictions observe one call, if they want to. Returns whether they did. */
function observe(predictions: ReadPredictions, given: Given, ranges: readonly RangeRequest[]) {
  const reads = predictions.observer()
  if (reads === null) return false
  for (const range of ranges) reads.add(range)
  predictions.observe(JSON.stringify(given), reads)
  return true
}

const predicted = (predictions: ReadPredictions, given: Given) =>
  predictions.predict(JSON.stringify(given))

/** Calls a Function that reads one range for each of two arguments. */
function transfer(predictions: ReadPredictions, from: number, to: number): boolean {
  const given = { amount: int(1), from: int(from), to: int(to) }
  return observe(predictions, given, [rangeOf([int(from)]), rangeOf([int(to)])])
}

describe('ranges that compare an index with arguments', () => {
  test('they are predicted after four calls that agree, and observed no longer', () => {
    const predictions = new ReadPredictions()
    const next = { amount: int(1), from: int(40), to: int(50) }
    for (const from of [10, 20, 30, 31]) {
      expect(predicted(predictions, next)).toEqual([])
      expect(transfer(predictions, from, from + 5)).toBe(true)
    }
    expect(predicted(predictions, next)).toEqual([rangeOf([int(40)]), rangeOf([int(50)])])
    expect(predictions.observer()).toBeNull()
  })

  test('they are told from arguments that were equal by chance', () => {
    const predictions = new ReadPredictions()
    for (const [from, to] of [
      [1, 1],
      [1, 2],
      [2, 1],
      [3, 4],
    ] as const) {
      transfer(predictions, from, to)
    }
    const next = { amount: int(1), from: int(8), to: int(9) }
    expect(predicted(predictions, next)).toEqual([rangeOf([int(8)]), rangeOf([int(9)])])
  })

  test('they have the text of the operation that the code sends', () => {
    const predictions = new ReadPredictions()
    for (const from of [1, 2, 3, 4]) transfer(predictions, from, from + 5)
    const [first] = predicted(predictions, { from: int(6), to: int(7), amount: int(1) })
    expect(JSON.stringify(first)).toBe(JSON.stringify(rangeOf([int(6)])))
  })

  test('they may compare constants and document IDs, which the code has as strings', () => {
    const predictions = new ReadPredictions()
    for (const id of ['a', 'b', 'c', 'd']) {
      observe(predictions, { owner: { $d: id } }, [rangeOf(['open', id])])
    }
    const next = { owner: { $d: 'e' } }
    expect(predicted(predictions, next)).toEqual([rangeOf(['open', 'e'])])
    expect(predicted(predictions, {})).toEqual([])
  })
})

describe('a Function without predictions', () => {
  /** Makes calls until one is not observed. Returns the number of observed ones. */
  function observedOf(call: (number: number) => boolean): number {
    for (let number = 0; number < 100; number++) if (!call(number)) return number
    return 100
  }

  test('a Function that compares other values is rarely observed', () => {
    const predictions = new ReadPredictions()
    const call = (n: number) => observe(predictions, { n: int(n) }, [rangeOf([int(n + 1)])])
    expect(observedOf(call)).toBe(2)
    // 63 more calls are not observed.
    for (let n = 0; n < 63; n++) expect(call(n)).toBe(false)
    expect(call(64)).toBe(true)
    expect(predicted(predictions, { n: int(1) })).toEqual([])
  })

  test('a Function that reads no range is rarely observed', () => {
    const predictions = new ReadPredictions()
    expect(observedOf(() => observe(predictions, {}, []))).toBe(1)
  })

  test('a Function whose bounds change is rarely observed', () => {
    const predictions = new ReadPredictions()
    const bound = (n: number) => ({ field: 'at', lower: { value: int(n), inclusive: true } })
    const call = (n: number) => observe(predictions, { n: int(n) }, [rangeOf([int(n)], bound(n))])
    expect(observedOf(call)).toBe(2)
  })

  test('a Function that did not read a predicted range has none', () => {
    const predictions = new ReadPredictions()
    for (const from of [1, 2, 3, 4]) transfer(predictions, from, from + 5)
    predictions.onUnread()
    expect(predicted(predictions, { from: int(1), to: int(2), amount: int(1) })).toEqual([])
    expect(predictions.observer()).toBeNull()
  })
})

test('pages after the first, and reads behind a write, are not observed', () => {
  const reads = new ObservedReads()
  reads.add(rangeOf([1]))
  reads.add(rangeOf([2], { cursor: 'next' }))
  reads.close()
  reads.add(rangeOf([3]))
  expect(reads.ranges).toEqual([rangeOf([1])])
})
