/** Tests that server and runner derive equal, unique IDs, in the order of inserts. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { fc, inputs } from '../../testing/properties.ts'
import { SEED } from '../../testing/seeds.ts'
import { documentId, documentIdSource } from './document-ids.ts'
import { idMillis, tableOfId } from './ids.ts'

const TABLES = ['t', 'notes', `t${'x'.repeat(63)}`]
/** The most inserts of one Mutation, which do not fit two bytes. */
const COUNT_MAX = 100_000

const invocation = fc.record({
  seed: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => bytes.toHex()),
  nowMicros: fc.bigInt({ min: 0n, max: 2n ** 47n * 1_000n }),
})
type Invocation = typeof invocation extends fc.Arbitrary<infer T> ? T : never

function idOf({ seed, nowMicros }: Invocation, count: number, table = 'notes'): string {
  const digest = createHash('sha256').update(documentIdSource(seed, count)).digest()
  return documentId(table, { nowMicros, count, digest })
}

const counts = fc.uniqueArray(fc.nat({ max: COUNT_MAX }), { minLength: 2, maxLength: 50 })

test(`an ID names its table and its time (SVC_SEED=${SEED})`, () => {
  const table = fc.constantFrom(...TABLES)
  const property = fc.property(invocation, fc.nat({ max: COUNT_MAX }), table, (of, count, name) => {
    const id = idOf(of, count, name)
    expect(tableOfId(id)).toBe(name)
    expect(idMillis(id)).toBe(Number(of.nowMicros / 1_000n))
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(2_000) })
})

test(`IDs of one invocation ascend with its inserts (SVC_SEED=${SEED})`, () => {
  const property = fc.property(invocation, counts, (of, some) => {
    const ascending = some.toSorted((a, b) => a - b).map((count) => idOf(of, count))
    expect(ascending.toSorted()).toEqual(ascending)
    expect(new Set(ascending).size).toBe(some.length)
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(1_000) })
})

test(`one invocation derives equal IDs, and another one derives others (SVC_SEED=${SEED})`, () => {
  const property = fc.property(invocation, invocation, counts, (of, other, some) => {
    fc.pre(of.seed !== other.seed)
    const ids = some.map((count) => idOf(of, count))
    expect(some.map((count) => idOf(of, count))).toEqual(ids)
    const atOnce = { ...other, nowMicros: of.nowMicros }
    expect(ids).not.toContain(idOf(atOnce, some[0]!))
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(1_000) })
})
