import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { TestSystem } from '../../system/system.ts'
import { type CommitWrites, ReadSet } from '../commits/read-set.ts'
import { ReadSetIndex } from './read-set-index.ts'

const name = fc.constantFrom(...'abcdefgh')
const reads = fc.record({
  documents: fc.array(name, { maxLength: 3 }),
  intervals: fc.array(fc.record({ index: fc.nat(1), lower: name, upper: name }), { maxLength: 4 }),
})
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ add: fc.nat(30), reads }) },
  { weight: 1, arbitrary: fc.record({ remove: fc.nat(30) }) },
)

function readSetOf({
  documents,
  intervals,
}: typeof reads extends fc.Arbitrary<infer T> ? T : never) {
  const readSet = new ReadSet()
  for (const id of documents) readSet.addDocument(id)
  for (const { index, lower, upper } of intervals) readSet.addInterval(index, { lower, upper })
  return readSet
}

function overlaps(readSet: ReadSet, { documents, keys }: CommitWrites): boolean {
  if (documents.some((id) => readSet.documents.has(id))) return true
  return [...keys].some(([index, list]) => list.some((key) => readSet.coversKey(index, key)))
}

function bruteForce<Owner>(owners: ReadonlyMap<Owner, ReadSet>, writes: CommitWrites): Set<Owner> {
  return new Set(
    [...owners].filter(([, readSet]) => overlaps(readSet, writes)).map(([owner]) => owner),
  )
}

describe('the read set index', () => {
  test('returns exactly the owners that a commit overlaps, after any adds and removes', {
    tags: ['slow'],
  }, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer(), (steps, seed) => {
        const index = new ReadSetIndex<number>(seed)
        const owners = new Map<number, ReadSet>()
        for (const each of steps) {
          if ('add' in each) {
            const readSet = readSetOf(each.reads)
            owners.set(each.add, readSet)
            index.add(each.add, readSet)
          } else {
            owners.delete(each.remove)
            index.remove(each.remove)
          }
        }
        expect(index.size).toBe(owners.size)
        for (const key of 'abcdefgh') {
          for (const physical of [0, 1]) {
            const writes = { documents: [key], keys: new Map([[physical, [key, `${key}x`]]]) }
            expect(index.matches(writes)).toEqual(bruteForce(owners, writes))
          }
        }
        for (const owner of owners.keys()) index.remove(owner)
        const all = {
          documents: [...'abcdefgh'],
          keys: new Map([
            [0, ['a']],
            [1, ['b']],
          ]),
        }
        expect([index.size, index.matches(all).size]).toEqual([0, 0])
      }),
      { numRuns: inputs(1_500) },
    )
  })

  test('finds the same of 10,000 intervals as a comparison with each of them', {
    tags: ['slow'],
  }, () => {
    const system = new TestSystem({ seed: 4711 })
    const random = (most: number) => Buffer.from(system.randomBytes(4)).readUInt32BE() % most
    const index = new ReadSetIndex<number>(7)
    const owners = new Map<number, ReadSet>()
    const text = (number: number) => String(number).padStart(6, '0')
    for (let owner = 0; owner < 10_000; owner++) {
      const readSet = new ReadSet()
      // Ascending for half of them, which would make a plain tree a list.
      const lower = owner < 5_000 ? owner * 20 : random(100_000)
      readSet.addInterval(1, { lower: text(lower), upper: text(lower + 1 + random(200)) })
      owners.set(owner, readSet)
      index.add(owner, readSet)
    }
    for (let owner = 0; owner < 10_000; owner += 3) {
      owners.delete(owner)
      index.remove(owner)
    }
    for (let i = 0; i < 300; i++) {
      const writes = { documents: [], keys: new Map([[1, [text(random(100_000))]]]) }
      expect(index.matches(writes)).toEqual(bruteForce(owners, writes))
    }
  })

  test('finds many owners of one interval and removes them one by one', () => {
    const index = new ReadSetIndex<number>(0)
    const readSet = new ReadSet()
    readSet.addInterval(1, { lower: 'a', upper: 'b' })
    for (let owner = 0; owner < 1_000; owner++) index.add(owner, readSet)
    const writes = { documents: [], keys: new Map([[1, ['a']]]) }
    expect(index.matches(writes).size).toBe(1_000)
    for (let owner = 0; owner < 999; owner++) index.remove(owner)
    expect(index.matches(writes)).toEqual(new Set([999]))
  })
})
