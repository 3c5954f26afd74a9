import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { ReadSet } from './read-set.ts'

const letter = fc.constantFrom(...'abcdefgh')
const interval = fc.record({ index: fc.nat(2), lower: letter, upper: letter })

describe('a read set', () => {
  test('covers exactly the keys of the intervals that were added', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 12 }), (intervals) => {
        const readSet = new ReadSet()
        for (const { index, lower, upper } of intervals)
          readSet.addInterval(index, { lower, upper })
        for (const index of [0, 1, 2]) {
          // Keys at and between the letters.
          for (const key of [...'abcdefghi'].flatMap((name) => [name, `${name}x`])) {
            const covered = intervals.some(
              (each) => each.index === index && each.lower <= key && key < each.upper,
            )
            expect(readSet.coversKey(index, key)).toBe(covered)
          }
        }
      }),
      { numRuns: inputs(3_000) },
    )
  })

  test('keeps its intervals sorted and disjoint, and counts its entries and bytes', () => {
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 20 }), fc.array(letter), (intervals, ids) => {
        const readSet = new ReadSet()
        for (const { index, lower, upper } of intervals)
          readSet.addInterval(index, { lower, upper })
        for (const id of ids) readSet.addDocument(id)
        let [count, bytes] = [readSet.documents.size, readSet.documents.size]
        for (const list of readSet.intervals.values()) {
          list.forEach(({ lower, upper }, i) => {
            expect(lower < upper).toBe(true)
            if (i > 0) expect(list[i - 1]!.upper < lower).toBe(true)
            bytes += lower.length + upper.length
          })
          count += list.length
        }
        expect([readSet.count, readSet.bytes]).toEqual([count, bytes])
        expect(readSet.documents).toEqual(new Set(ids))
      }),
      { numRuns: inputs(3_000) },
    )
  })

  test('a list that is read page by page stays one interval', () => {
    const readSet = new ReadSet()
    for (let page = 0; page < 1_000; page++) {
      const [lower, upper] = [String.fromCharCode(page), String.fromCharCode(page + 1)]
      readSet.addInterval(1, { lower, upper })
    }
    expect(readSet.count).toBe(1)
  })
})
