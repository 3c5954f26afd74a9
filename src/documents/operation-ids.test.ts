import { expect, test } from 'vitest'
import { documentId } from '../../testing/documents/store-fixtures.ts'
import { fc, inputs } from '../../testing/properties.ts'
import { SEED } from '../../testing/seeds.ts'
import { OperationIds } from './operation-ids.ts'

const number = fc.nat({ max: 60 })

test(`every ID that has a record may exist (SVC_SEED=${SEED})`, () => {
  const property = fc.property(fc.array(number), fc.array(number), (stored, added) => {
    const records = stored.map((n) => documentId('opn', n))
    const ids = new OperationIds(records.toSorted().at(-1) ?? '', 4)
    for (const n of added) {
      records.push(documentId('opn', n))
      ids.add(documentId('opn', n))
      expect(records.filter((id) => !ids.mayExist(id))).toEqual([])
    }
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(1_000) })
})

test('an ID that is greater than the newest record is new', () => {
  const ids = new OperationIds(documentId('opn', 10), 4)
  for (let n = 11; n < 30; n++) {
    expect(ids.mayExist(documentId('opn', n))).toBe(false)
    ids.add(documentId('opn', n))
  }
})

test('an ID of a clock that lags by less than a generation is new too', () => {
  const ids = new OperationIds('', 4)
  for (let n = 1; n < 30; n++) ids.add(documentId('opn', 2 * n))
  expect(ids.mayExist(documentId('opn', 2 * 29 - 5))).toBe(false)
})
