/** Fuzzes tagged and stored values: each text is rejected, or decodes to a value with that text. */
import { expect } from 'vitest'
import { anyJson, fuzz, mutatedJson, mutatedText, type Random } from '../../testing/fuzzing/fuzz.ts'
import { encodeStored, fromStoredJson } from './stored.ts'
import { type Json, parseStrictJson } from './strict-json.ts'
import { decodeTagged, encodeTagged } from './tagged.ts'
import { ValidationError } from './validation-error.ts'
import { type Value, valueEquals } from './values.ts'

const VALUES: readonly Json[] = [
  { type: 'null' },
  { type: 'boolean', value: true },
  { type: 'int64', value: '-9223372036854775808' },
  { type: 'float64', value: '3ff0000000000000' },
  { type: 'string', value: 'a\u{1f600}' },
  { type: 'bytes', value: '-_8' },
  { type: 'timestamp', value: '0' },
  { type: 'typed_id', value: 'messages_01ARZ3NDEKTSV4RRFFQ69G5FAV' },
]
const NESTED: Json = {
  type: 'object',
  value: [
    { key: '', value: { type: 'array', value: [...VALUES] } },
    { key: 'a', value: { type: 'object', value: [] } },
    { key: '\uffff', value: VALUES[2]! },
    { key: '\u{10000}', value: VALUES[3]! },
  ],
}
const STORED = {
  a: [null, true, 0.5, 'x', { $i: '7' }, { $b: 'AQI' }, { $t: '-5' }, { $$x: { $$i: 1 } }],
  b: { $d: 'messages_01ARZ3NDEKTSV4RRFFQ69G5FAV' },
}

function orNull<T>(work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    expect(error).toBeInstanceOf(ValidationError)
    return null
  }
}

/** Expects that both forms restore the value, and that it has one text in each. */
function checkForms(value: Value): void {
  const tagged = encodeTagged(value)
  const back = decodeTagged(parseStrictJson(tagged))
  const stored = encodeStored(value)
  const kept = fromStoredJson(JSON.parse(stored))
  if (!valueEquals(back, value) || encodeTagged(back) !== tagged) expect.fail(tagged)
  if (!valueEquals(kept, value) || encodeStored(kept) !== stored) expect.fail(stored)
}

fuzz('a tagged value is rejected, or has exactly one text', (random) => {
  const json = mutatedJson(random, random.chance(3) ? random.pick(VALUES) : NESTED) as Json
  const text = random.chance(2) ? JSON.stringify(json) : mutatedText(random, JSON.stringify(json))
  const decoded = orNull(() => ({ value: decodeTagged(parseStrictJson(text)) }))
  if (decoded !== null) checkForms(decoded.value)
})

fuzz('a stored value that a runner sends is rejected, or has exactly one text', (random) => {
  const json = random.chance(4) ? anyJson(random) : mutatedJson(random, STORED)
  const decoded = orNull(() => ({ value: fromStoredJson(json) }))
  if (decoded !== null) checkForms(decoded.value)
})

fuzz('strict JSON is rejected, or means what JSON.parse says', (random: Random) => {
  const text = mutatedText(random, JSON.stringify(random.chance(2) ? NESTED : STORED))
  const read = orNull(() => ({ json: parseStrictJson(text) }))
  const bytes = orNull(() => ({ json: parseStrictJson(new TextEncoder().encode(text)) }))
  if (read === null) return
  const parsed = JSON.stringify(JSON.parse(text))
  if (JSON.stringify(read.json) !== parsed || JSON.stringify(bytes?.json) !== parsed) {
    expect.fail(text)
  }
})
