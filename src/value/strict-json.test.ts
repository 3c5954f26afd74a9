import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../testing/properties.ts'
import { SEED } from '../../testing/seeds.ts'
import { canonicalJson } from './canonical-json.ts'
import { type Json, parseKeptJson, parseStrictJson } from './strict-json.ts'
import { ValidationError } from './validation-error.ts'

const bytes = (...values: number[]) => new Uint8Array(values)

describe('strict JSON', () => {
  test('output of JSON.stringify is parsed as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.boolean(), (value, indent) => {
        fc.pre(!JSON.stringify(value).includes('"__proto__":') && integersAreSafe(value))
        const text = JSON.stringify(value, null, indent ? 2 : 0)
        if (!text.isWellFormed()) return
        expect(parseStrictJson(text)).toEqual(JSON.parse(text))
        expect(parseStrictJson(new TextEncoder().encode(text))).toEqual(JSON.parse(text))
      }),
      { numRuns: inputs(2_000) },
    )
  })

  test('no text crashes the parser, and JSON.parse accepts each text that it accepts', {
    tags: ['slow'],
  }, () => {
    const noise = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.stringMatching(/^[[\]{}":,0-9eE+.\\u truefalsn-]{0,30}$/),
    )
    fc.assert(
      fc.property(noise, (text) => {
        let value: Json
        try {
          value = parseStrictJson(text)
        } catch (error) {
          expect(error).toBeInstanceOf(ValidationError)
          return
        }
        expect(value).toEqual(JSON.parse(text))
      }),
      { numRuns: inputs(20_000) },
    )
  })

  test(`compact texts are parsed like texts with trailing white space (SVC_SEED=${SEED})`, () => {
    const { text } = fc.letrec<{ text: string }>((tie) => ({
      text: fc.oneof(
        { depthSize: 'medium' },
        fc.constantFrom('0', '-0', '1.0', '1.5', '1e+21', '1e21', '9007199254740991', 'null'),
        fc.constantFrom('9007199254740992', '-9007199254740993', '12345678901234567890', 'true'),
        fc.constantFrom(
          '"a"',
          '"\\u0061"',
          '"\\ud800"',
          '"\ud800"',
          '"é\u2028😀"',
          '":1234567890123456"',
        ),
        fc.string({ maxLength: 8 }).map((it) => JSON.stringify(it)),
        fc.array(tie('text'), { maxLength: 4 }).map((items) => `[${items.join()}]`),
        fc
          .array(fc.tuple(fc.constantFrom('a', 'b', '1', '__proto__', 'toJSON'), tie('text')), {
            maxLength: 4,
          })
          .map((members) => `{${members.map(([key, it]) => `"${key}":${it}`).join()}}`),
      ),
    }))
    const limits = { depthMax: 3, entriesMax: 3 }
    const outcome = (it: string, bounds?: typeof limits) => {
      try {
        return JSON.stringify(parseStrictJson(it, bounds))
      } catch (error) {
        return error instanceof ValidationError ? 'malformed' : error
      }
    }
    let accepted = 0
    const property = fc.property(text, (it) => {
      const found = outcome(it)
      if (found !== 'malformed') accepted += 1
      expect(found).toBe(outcome(`${it} `))
      expect(outcome(it, limits)).toBe(outcome(`${it} `, limits))
    })
    fc.assert(property, { seed: SEED, numRuns: inputs(20_000) })
    expect(accepted).toBeGreaterThan(inputs(2_000))
  })

  test.each([
    ['a duplicate key', '{"a":1,"a":1}'],
    ['a duplicate key behind an escape', '{"a":1,"\\u0061":1}'],
    ['a __proto__ key', '{"__proto__":1}'],
    ['an escaped __proto__ key', '{"\\u005f_proto__":1}'],
    ['a lone high surrogate', '"\\ud800"'],
    ['a lone low surrogate', '"\\udc00x"'],
    ['a raw lone surrogate', '"\ud800"'],
    ['a control character', '"\n"'],
    ['an integer beyond 2^53', '9007199254740993'],
    ['an integer of 2^53', '9007199254740992'],
    ['an integer of 2^53 within', '{"a":[1,-9007199254740992]}'],
    ['an infinite number', '1e400'],
    ['a leading zero', '01'],
    ['a bare fraction', '.5'],
    ['a plus sign', '+1'],
    ['a trailing comma', '[1,]'],
    ['trailing data', '{} {}'],
    ['a byte order mark', '\ufeff{}'],
    ['nothing', ''],
    ['a comment', '/**/1'],
    ['single quotes', "{'a':1}"],
    ['NaN', 'NaN'],
    ['an unterminated string', '"abc'],
    ['an unknown escape', '"\\x41"'],
  ])('%s is rejected', (_, text) => {
    expect(() => parseStrictJson(text)).toThrow(ValidationError)
  })

  test('invalid UTF-8 is rejected', () => {
    expect(() => parseStrictJson(bytes(0x22, 0xff, 0x22))).toThrow(ValidationError)
    expect(() => parseStrictJson(bytes(0x22, 0xed, 0xa0, 0x80, 0x22))).toThrow(ValidationError)
    expect(() => parseStrictJson(bytes(0xef, 0xbb, 0xbf, 0x31))).toThrow(ValidationError)
  })

  test('depth and entries are bounded exactly', () => {
    const limits = { depthMax: 3, entriesMax: 2 }
    expect(() => parseStrictJson('[[[1]]]', limits)).not.toThrow()
    expect(() => parseStrictJson('[[[[1]]]]', limits)).toThrow(ValidationError)
    expect(() => parseStrictJson('[1,2]', limits)).not.toThrow()
    expect(() => parseStrictJson('[1,2,3]', limits)).toThrow(ValidationError)
    expect(() => parseStrictJson('{"a":1,"b":1,"c":1}', limits)).toThrow(ValidationError)
  })
})

describe('canonical JSON', () => {
  test('a value has one text, in any order of its keys', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4, noUnicodeString: false }), (value) => {
        fc.pre(JSON.stringify(value).isWellFormed())
        const text = canonicalJson(value as Json)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonicalJson(shuffled(value as Json))).toBe(text)
        expect(canonicalJson(JSON.parse(text))).toBe(text)
      }),
      { numRuns: inputs(1_000) },
    )
  })

  test('the sorting example of RFC 8785 has its exact order', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6']
    const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])))
    const order = Object.keys(JSON.parse(text.replace('"1":0', '"one":0')))
    expect(order).toEqual(['\r', 'one', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33'])
  })
})

function integersAreSafe(value: unknown): boolean {
  return (JSON.stringify(value).match(/(?<![.\deE+-])-?\d{16,}(?![\d.eE])/g) ?? []).length === 0
}

function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map(shuffled)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, shuffled(member)]),
  )
}

test('a text that is kept in parts is read as any other', () => {
  for (const text of ['{"a":["b",1,null]}', ' { "a" : [ "\\u0062" , 1e3 , true ] } ']) {
    expect(parseKeptJson(text)).toEqual(parseStrictJson(text))
  }
  for (const text of ['{"a":1,"a":1}', '{ "__proto__": 1 }', '[1', '9007199254740993']) {
    expect(() => parseKeptJson(text)).toThrow(ValidationError)
  }
})

test('a part of a text that is kept does not hold the whole text in memory', {
  tags: ['slow'],
}, () => {
  const [count, blanks] = [100, ' '.repeat(100_000)]
  const texts = Array.from({ length: count }, (_, i) => `${blanks}{"name":"part ${i}"}`)
  const kept = texts.map((text) => (parseKeptJson(text) as { readonly name: string }).name)
  const held = () => {
    Bun.gc(true)
    return heapStats().extraMemorySize
  }
  const before = held()
  texts.length = 0
  expect(before - held()).toBeGreaterThan((count * blanks.length) / 2)
  expect(kept.at(-1)).toBe(`part ${count - 1}`)
})
