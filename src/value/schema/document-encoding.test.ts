/**
 * Goal: the text of a document becomes the same tagged text as its parsed and checked value, and
 * only where that is certain. Method: random validators and documents, with the general encoder and
 * the checks of validators as the references.
 */
import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import {
  accepted,
  arbitraryValidator,
  picker,
  ULID,
} from '../../../testing/schemas/arbitrary-validators.ts'
import { SEED } from '../../../testing/seeds.ts'
import { RETURNED_DOCUMENTS } from '../../engine/calls/returned-documents.ts'
import { encodeStored, fromStoredJson } from '../stored.ts'
import { ValidationError } from '../validation-error.ts'
import type { FieldsJson, ValidatorJson } from '../validators.ts'
import { Timestamp, type Value, type ValueObject } from '../values.ts'
import type { EncodedDocument } from './document-encoding.ts'
import { compileResult, type NamedObjects } from './result-encoding.ts'

const SYSTEM_FIELDS: FieldsJson = {
  _createdAt: { type: 'timestamp' },
  _id: { type: 'id', table: 'messages' },
  _revision: { type: 'int64' },
}

function documentOf(text: string): EncodedDocument {
  return { id: `messages_${ULID}`, createdAtMicros: 5n, sequence: 7, text }
}

/** Calls `onParsed` for each document that is parsed as a whole. */
function counting(onParsed: () => unknown): NamedObjects {
  return {
    ...RETURNED_DOCUMENTS,
    contentOf(object) {
      onParsed()
      return RETURNED_DOCUMENTS.contentOf(object)
    },
  }
}

function encoders(fields: FieldsJson) {
  const json: ValidatorJson = { type: 'object', fields: { ...fields, ...SYSTEM_FIELDS } }
  let parsedCount = 0
  const fromText = compileResult(
    json,
    counting(() => (parsedCount += 1)),
  )
  const { contentOf } = RETURNED_DOCUMENTS
  const general = compileResult(json, { contentOf })
  return {
    fromText: (document: EncodedDocument) => fromText({ $r: 0 }, [document]),
    general: (document: EncodedDocument) => general({ $r: 0 }, [document]),
    /** Returns the count of documents that were parsed as a whole. */
    parsed: () => parsedCount,
  }
}

/** The text under which a store has the value; null for JSON that is not one of an object. */
function storedText(json: unknown): string | null {
  try {
    const value = fromStoredJson(json)
    return value instanceof Map ? encodeStored(value as ValueObject) : null
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

const arbitraryFields = arbitraryValidator
  .filter((json) => json.type === 'object')
  .map(({ fields }) => {
    // Names of fields of a table begin with a letter.
    const entries = Object.entries(fields).filter(([name]) => name !== '_id')
    return Object.fromEntries(entries)
  })
const numbers = fc.infiniteStream(fc.nat({ max: 1_000 }))

test(`a document is encoded from its text as its value is (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  let [met, parsed] = [0, 0]
  const property = fc.property(arbitraryFields, numbers, (fields, stream) => {
    const text = storedText(accepted({ type: 'object', fields }, picker(stream)))
    if (text === null) return
    const encode = encoders(fields)
    const document = documentOf(text)
    expect(encode.fromText(document)).toBe(encode.general(document))
    met += 1
    parsed += encode.parsed()
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(2_000) })
  expect(met).toBeGreaterThan(inputs(1_500))
  // Most are not parsed, or the test would compare the general encoder with itself.
  expect(parsed).toBeLessThan(met * 0.6)
})

test(`a document of another schema is encoded as its value is (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  const property = fc.property(
    arbitraryFields,
    arbitraryFields,
    numbers,
    (fields, other, stream) => {
      const text = storedText(accepted({ type: 'object', fields: other }, picker(stream)))
      if (text === null) return
      const encode = encoders(fields)
      const document = documentOf(text)
      expect(encode.fromText(document)).toBe(encode.general(document))
    },
  )
  fc.assert(property, { seed: SEED, numRuns: inputs(2_000) })
})

const TEXTS = [
  '',
  '"',
  '\\',
  '\\"',
  '\\\\',
  'a"b',
  '{"$i":"1"}',
  '\n\u2028',
  'é',
  '\u{1f600}',
  ',}',
]

describe('a string', () => {
  test.each(TEXTS)('%j is copied whole, wherever it stands', (content) => {
    const encode = encoders({
      a: { type: 'string' },
      b: { type: 'array', items: { type: 'string' } },
      c: { type: 'object', fields: { d: { type: 'string' } } },
      e: { type: 'any' },
    })
    const inner = new Map([['d', content]])
    const fields: [string, Value][] = [
      ['a', content],
      ['b', [content, '', content]],
      ['c', inner],
      ['e', inner],
    ]
    const document = documentOf(encodeStored(new Map(fields)))
    const text = encode.fromText(document)
    expect(text).not.toBeNull()
    expect(text).toBe(encode.general(document))
    expect(encode.parsed()).toBe(0)
  })
})

describe('a value of another type than the declared one', () => {
  const values: Value[] = [null, true, 0.5, 7n, 'text', new Timestamp(7n), [], new Map()]
  const types: ValidatorJson[] = [
    { type: 'null' },
    { type: 'boolean' },
    { type: 'float64' },
    { type: 'int64' },
    { type: 'string' },
    { type: 'timestamp' },
    { type: 'id', table: 'messages' },
    { type: 'array', items: { type: 'null' } },
    { type: 'object', fields: {} },
    { type: 'nullable', inner: { type: 'string' } },
  ]

  test.each(types)('a document is rejected as a parsed one is: $type', (type) => {
    const encode = encoders({ a: type, b: { type: 'optional', inner: type } })
    for (const value of values) {
      for (const fields of [{ a: value }, { a: value, b: value }, { b: value }, {}]) {
        const document = documentOf(encodeStored(new Map(Object.entries(fields))))
        expect(encode.fromText(document)).toBe(encode.general(document))
      }
    }
  })
})

test('a document of another table is rejected', () => {
  const encode = encoders({})
  expect(encode.fromText(documentOf('{}'))).not.toBeNull()
  expect(encode.fromText({ ...documentOf('{}'), id: `notes_${ULID}` })).toBeNull()
})

test('a document that is named for the 4,097th time in a result is not encoded again', () => {
  const json: ValidatorJson = {
    type: 'array',
    items: { type: 'object', fields: SYSTEM_FIELDS },
  }
  let parsed = 0
  const encode = compileResult(
    json,
    counting(() => (parsed += 1)),
  )
  const references = (count: number) => Array.from({ length: count }, () => ({ $r: 0 }))
  const named = [documentOf('{}')]
  expect(encode(references(4_096), named)).not.toBeNull()
  expect(parsed).toBe(0)
  expect(encode(references(9_000), named)).not.toBeNull()
  expect(parsed).toBe(1)
})
