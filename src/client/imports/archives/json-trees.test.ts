import { describe, expect, it } from 'vitest'
import { fc, inputs } from '../../../../testing/properties.ts'
import { SEED } from '../../../../testing/seeds.ts'
import { type JsonPath, treeOf } from './json-trees.ts'
import { EXPORT_LINE_BYTES_MAX } from './lines.ts'

type Event = readonly [path: string, value: unknown]

async function* chunksOf(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

/** Reads a text whose containers above `depth` are descended into. */
async function eventsOf(text: string | Uint8Array, depth: number, chunk = 7): Promise<Event[]> {
  const events: Event[] = []
  const reading = {
    descends: (path: JsonPath) => path.length < depth,
    nextIfTooLong: 'Name a deeper path.',
  }
  for await (const { path, value } of treeOf(
    'a.json',
    () => chunksOf(Buffer.from(text), chunk),
    reading,
  )) {
    const parsed = value === null ? 'end' : { json: JSON.parse(Buffer.from(value).toString()) }
    events.push([JSON.stringify(path), parsed])
  }
  return events
}

/** The events of a value, by a parser that has all of it. */
function expected(json: unknown, depth: number, path: readonly string[] = []): Event[] {
  const at = JSON.stringify(path)
  if (typeof json !== 'object' || json === null || path.length >= depth) return [[at, { json }]]
  const members = Object.entries(json).flatMap(([key, value]) => {
    return expected(value, depth, [...path, key])
  })
  return [...members, [at, 'end']]
}

describe('a tree of JSON', () => {
  it(`a tree gives the values that a whole parser finds (SVC_SEED=${SEED})`, async () => {
    const key = fc.oneof(
      fc.string({ unit: 'grapheme' }).filter((each) => each !== '__proto__'),
      fc.constantFrom('a"b', 'a\\', '{', ']', ''),
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, true, false, 0, -1.5, 1e21, '', '"\\', '}{][,:'),
        fc.string({ unit: 'grapheme' }),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(
        tree,
        fc.integer({ min: 0, max: 4 }),
        fc.integer({ min: 1, max: 50 }),
        fc.constantFrom(0, 2, '\t'),
        async (json, depth, chunk, indent) => {
          const text = `${JSON.stringify(json, null, indent)}\n`
          const whole = expected(JSON.parse(text), depth)
          expect(await eventsOf(text, depth, chunk)).toEqual(whole)
        },
      ),
      { seed: SEED, numRuns: inputs(500) },
    )
  }, 120_000)

  it('a tree may begin with a byte order mark', async () => {
    expect(await eventsOf('\ufeff{"a":1}', 1, 1)).toEqual([
      ['["a"]', { json: 1 }],
      ['[]', 'end'],
    ])
  })

  it.each([
    ['nothing', ''],
    ['white space alone', ' \n'],
    ['no end', '{"a":{"b":1}'],
    ['no end of a text', '{"a":"b'],
    ['text after its end', '{"a":1} {'],
    ['a key without quotes', '{a:1}'],
    ['a key with a line feed', '{"a\n":1}'],
    ['a key without a colon', '{"a" 1}'],
    ['a key without a value', '{"a":}'],
    ['a comma before the end', '{"a":1,}'],
    ['a comma alone', '{,}'],
    ['no comma', '{"a":1 "b":2}'],
    ['a bracket of another kind', '{"a":{]}'],
    ['a bracket of another kind in a value', '{"a":{"b":{"c":[1}]}}'],
    ['an end of another kind', '{"a":1]'],
    ['a word that is none', '{"a":nul}'],
    ['a number that is none', '{"a":01}'],
    ['a part of a byte order mark', Buffer.from([0xef, 0xbb, 0x7b, 0x7d])],
    ['a key that is no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['16 bits for each character', Buffer.from('{"a":1}', 'utf16le')],
    ['too many levels', '['.repeat(1_001)],
    ['too many levels in a value', `{"a":{"b":${'['.repeat(1_001)}`],
  ])('a tree with %s is rejected', async (_, text) => {
    for (const chunk of [1, 7, 100_000]) {
      await expect(eventsOf(text, 2, chunk)).rejects.toMatchObject({
        code: 'CLIENT_EXPORT_INVALID',
      })
    }
    await expect(eventsOf(text, 2_000, 100_000)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
    })
  })

  it.each([
    ['{"a":1,"b":2,"a":3}', 1, 'a'],
    ['{"a":{"b":1},"c":{"b":1,"d":2,"b":3}}', 2, 'c/b'],
    ['{"a":{"b":1},"a":{"c":1}}', 2, 'a'],
    ['[{"a":1},{"a":1,"\\u0061":2}]', 2, '1/a'],
    ['{"__proto__":1,"__proto__":2}', 1, '__proto__'],
  ])(
    'a key that is repeated in an object is rejected with its path: %s',
    async (text, depth, at) => {
      for (const chunk of [1, 100_000]) {
        await expect(eventsOf(text, depth, chunk)).rejects.toMatchObject({
          code: 'CLIENT_EXPORT_INVALID',
          detail: `a.json has a key twice, at ${at}.`,
        })
      }
    },
  )

  it('the same key in different objects is no repetition', async () => {
    expect(await eventsOf('{"a":{"b":1},"b":{"b":1,"a":1}}', 2)).toHaveLength(6)
  })

  it('a tree with a value or a key that is too long is rejected, with a next step', async () => {
    const long = `{"a":{"b":"${'x'.repeat(EXPORT_LINE_BYTES_MAX)}"}}`
    await expect(eventsOf(long, 2, 65_536)).rejects.toMatchObject({
      detail: expect.stringMatching(/^a\.json has a value of more than \d+ bytes, at a\/b\.$/),
      cause: { next: 'Name a deeper path.' },
    })
    await expect(eventsOf(`{"${'x'.repeat(20_000)}":1}`, 2, 65_536)).rejects.toMatchObject({
      detail: 'a.json has a key of more than 16384 bytes.',
    })
  })
})
