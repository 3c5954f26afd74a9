/** The frames of a runner are untrusted: every wrong shape is rejected, and none crashes. */
import { describe, expect, test } from 'vitest'
import { VALID_MESSAGES as VALID } from '../../../testing/hostile/messages.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { decodeFromRunner } from './messages.ts'

const decode = (message: unknown) => decodeFromRunner(JSON.stringify(message))

const USAGE = [true, false, true, 12, []]
const RANGE = { table: 't', index: null, equal: [], order: 'asc', limit: 1, next: 'sealed' }
const LONG = 'x'.repeat(100_000)

describe('a message of a runner', () => {
  test.each(VALID.map((message) => [JSON.stringify(message)]))(
    'a message is decoded: %s',
    (text) => {
      expect(decodeFromRunner(text).type).toBe((JSON.parse(text) as string[])[0])
    },
  )

  test.each(VALID.map((message) => [JSON.stringify(message)]))(
    'a message is rejected with another length: %s',
    (text) => {
      const message = JSON.parse(text) as unknown[]
      expect(() => decode([...message, null])).toThrow(ValidationError)
      expect(() => decode(message.slice(0, -1))).toThrow(ValidationError)
    },
  )

  test.each([
    ['{"type":"loaded"}'],
    ['null'],
    ['"loaded"'],
    ['[]'],
    ['[["loaded"]]'],
    ['["__proto__"]'],
    ['["loaded"'],
    ['['.repeat(100_000)],
  ])('a message is rejected in any other form: %#', (text) => {
    expect(() => decodeFromRunner(text)).toThrow(ValidationError)
  })

  test.each([
    [['get', LONG]],
    [['range', { ...RANGE, cursor: LONG }]],
    [['insert', LONG, {}]],
    [['patch', LONG, {}, Array(2_000).fill(LONG.slice(0, 100))]],
    [['replace', LONG, {}]],
    [['delete', LONG]],
    [['run', 'query', LONG, {}]],
  ])(
    'a message is decoded regardless of the length of the text of a caller in it: operation %#',
    (op) => {
      expect(decode(['operation', 1, 2, op])).toMatchObject({ op })
    },
  )

  test('a message has the texts of its error cut at their bound', () => {
    const long = 'x'.repeat(100_000)
    const message = decode(['threw', 1, [long, long, long], USAGE])
    expect(message.type === 'threw' && message.error.stack.length).toBe(8_192)
  })

  test('a message with one part replaced is decoded or rejected, and nothing else happens', {
    tags: ['slow'],
  }, () => {
    const seed = 20_261_121
    const replacement = fc.record({ message: fc.constantFrom(...VALID), other: fc.jsonValue() })
    fc.assert(
      fc.property(replacement, fc.nat(), ({ message, other }, at) => {
        const changed: unknown[] = [...structuredClone(message)]
        replaceOne(changed, at, other)
        try {
          decode(changed)
        } catch (error) {
          expect(error).toBeInstanceOf(ValidationError)
        }
      }),
      { seed, numRuns: inputs(20_000) },
    )
  })
})

/** Replaces one part, by its index in depth-first order. */
function replaceOne(json: unknown[], at: number, other: unknown): void {
  const parts: [Record<string, unknown>, string][] = []
  const visit = (part: unknown) => {
    if (typeof part !== 'object' || part === null) return
    for (const key of Object.keys(part)) {
      parts.push([part as Record<string, unknown>, key])
      visit((part as Record<string, unknown>)[key])
    }
  }
  visit(json)
  const [owner, key] = parts[at % parts.length]!
  owner[key] = other
}
