/** The guide for authors of clients in other languages: its examples are those of the codec. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { encodeUlid, isId } from '../value/ids.ts'
import { parseStrictJson } from '../value/strict-json.ts'
import { decodeTagged, encodeTagged } from '../value/tagged.ts'
import {
  Timestamp,
  TypedId,
  VALUE_DEPTH_MAX,
  VALUE_ENTRIES_MAX,
  type Value,
} from '../value/values.ts'

const GUIDE = readFileSync(new URL('../docs/calls.md', import.meta.url), 'utf8')
const ID = '01KDVDNA00041061050R3GG28A'
const START_MICROS = BigInt(Date.parse('2026-01-01T00:00:00Z')) * 1_000n

/** The ten types with the values of their examples. */
const VALUES: Readonly<Record<string, Value>> = {
  null: null,
  boolean: true,
  int64: -5n,
  float64: 1.5,
  string: 'é',
  bytes: Uint8Array.of(0xfb, 0xff, 0),
  timestamp: new Timestamp(START_MICROS),
  typed_id: new TypedId(`messages_${ID}`),
  array: [null],
  object: new Map([
    ['b', null],
    ['～', null],
    ['😀', null],
  ]),
}

/** Returns the rows of the guide whose cell is a tagged value, with the cell before it. */
function rows(form: RegExp): [string, string][] {
  return [...GUIDE.matchAll(form)].map(([, before = '', text = '']) => [before, text])
}

test('the guide has one canonical example of each type', () => {
  const examples = rows(/^\| (\w+) \| `(\{"type":.*?\})` \| /gm)
  expect(examples.map(([type]) => type)).toEqual(Object.keys(VALUES))
  for (const [type, text] of examples) {
    const value = decodeTagged(parseStrictJson(text))
    expect(value).toEqual(VALUES[type])
    expect(encodeTagged(VALUES[type]!)).toBe(text)
    expect(text).toContain(`"type":"${type}"`)
  }
})

test('what the guide calls not accepted is rejected', () => {
  const rejected = rows(/^\|( )`(\{"type":.*?\})` \| [a-zA-Z]/gm)
  expect(rejected.length).toBeGreaterThan(9)
  for (const [, text] of rejected) {
    expect(() => decodeTagged(parseStrictJson(text)), text).toThrow(/\$/)
  }
})

test('the guide makes the operation ID as the server reads it', () => {
  const millis = Number(START_MICROS / 1_000n)
  const bytes = Uint8Array.from({ length: 10 }, (_, i) => i + 1)
  expect(encodeUlid(millis, bytes)).toBe(ID)
  expect(isId('opn', `opn_${ID}`)).toBe(true)
  expect(GUIDE).toContain(`opn_${ID}`)
})

test('the guide has the bounds of values', () => {
  expect(GUIDE).toContain(`at most ${VALUE_DEPTH_MAX} levels`)
  expect(GUIDE).toContain(`at most ${VALUE_ENTRIES_MAX.toLocaleString('en')} entries`)
})
