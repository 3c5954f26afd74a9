import { expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import type { CommitBatch } from '../store.ts'
import { decodeBatch, encodeBatch } from './batch-messages.ts'

const text = fc.string({ unit: 'binary', maxLength: 30 })
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
/** A binary string. */
const key = bytes.map((array) => array.toString('latin1'))
const micros = fc.bigInt({ min: -(2n ** 53n) + 1n, max: 2n ** 53n - 1n })
const sequence = fc.option(fc.maxSafeNat())

const batch: fc.Arbitrary<CommitBatch> = fc.record({
  transactions: fc.array(
    fc.record(
      {
        sequence,
        atMicros: micros,
        writes: fc.array(
          fc.record({
            id: text,
            createdAtMicros: micros,
            text: fc.option(text),
            entries: fc.array(fc.record({ index: fc.nat(), key, live: fc.boolean() })),
          }),
          { maxLength: 4 },
        ),
        operation: fc.record({
          operationId: text,
          fingerprint: bytes,
          commitSequence: sequence,
          releaseId: text,
          function: text,
          result: text,
          attempts: fc.nat(),
          createdAtMicros: micros,
        }),
      },
      { requiredKeys: ['sequence', 'atMicros', 'writes'] },
    ),
    { maxLength: 4 },
  ),
})

test(`a decoded batch equals the encoded one (SVC_SEED=${SEED})`, () => {
  const property = fc.property(batch, (sent) => {
    expect(decodeBatch(encodeBatch(sent))).toEqual(sent)
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(1_000) })
})
