/**
 * Results of a compromised runner with document references in them: both decoders, of values and of
 * texts, must agree.
 */
import { expect } from 'vitest'
import { fuzz, mutatedJson } from '../../../testing/fuzzing/fuzz.ts'
import { compileResult } from '../../value/schema/result-encoding.ts'
import { encodeTagged } from '../../value/tagged.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { RETURNED_DOCUMENTS, returnedValue } from './returned-documents.ts'

const documents = ['{}', '{"a":{"$t":"1"},"b":[{"$$r":{"$b":"AA"}}]}'].map((text, i) => ({
  id: `t_${i}`,
  createdAtMicros: 1n,
  sequence: 1,
  text,
}))
const RESULTS: readonly unknown[] = [
  { $r: 0 },
  [{ $r: 1 }, { a: { $r: 0 } }, { $$r: 0 }],
  { a: [[{ $r: 1 }]], b: { $i: '1' }, c: [{ $r: 0 }, { $r: 1 }] },
]
const encode = compileResult({ type: 'any' }, RETURNED_DOCUMENTS)

fuzz('a result with document references is rejected or decoded equally', (random) => {
  const result = mutatedJson(random, random.pick(RESULTS))
  const json: unknown = JSON.parse(JSON.stringify(result) ?? 'null')
  const text = encode(json, documents)
  try {
    expect(encodeTagged(returnedValue(json, documents))).toBe(text)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    if (text !== null) expect.fail(text)
  }
})
