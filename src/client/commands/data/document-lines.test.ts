/** Lines of exported and imported documents: what one writes, the other reads. */
import { expect, it } from 'vitest'
import { arbitraryTyped } from '../../../../testing/arbitrary/validators.ts'
import { fc, inputs } from '../../../../testing/properties.ts'
import { SEED } from '../../../../testing/seeds.ts'
import { parseStrictJson } from '../../../value/strict-json.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import { compileValidator, type FieldsJson } from '../../../value/validators.ts'
import type { Value } from '../../../value/values.ts'
import type { DocumentField } from '../../../wire/data.ts'
import { lineReader, lineWriter } from './document-lines.ts'

const ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'

function documentOf(value: Value): DocumentField {
  return {
    id: ID,
    table: 'notes',
    revision: '1',
    createdAtMicros: '1769860800000001',
    value: parseStrictJson(encodeTagged(value)),
  } as DocumentField
}

it(`a document is imported as it was exported, whatever its schema (SVC_SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(arbitraryTyped, { maxLength: 4 }), fc.boolean(), (typed, isTagged) => {
      const named = typed.map(([validator, value], i) => [`field${i}`, validator, value] as const)
      const fields: FieldsJson = Object.fromEntries(named.map(([name, json]) => [name, json]))
      // The store has what the schema makes of a value: in a union a text may become an ID.
      const stored = compileValidator({ type: 'object', fields }, { coerce: true })
      const value = stored(new Map(named.map(([name, , each]) => [name, each])), '$')
      const line = lineWriter(isTagged ? null : fields)(documentOf(value))
      const read = lineReader('notes', fields, isTagged)(new TextEncoder().encode(line))
      expect(read).toEqual({ documentId: ID, value: encodeTagged(value) })
    }),
    { seed: SEED, numRuns: inputs(1_000) },
  )
})

it('a line shows its ID and time, and tags only what its schema does not decide', () => {
  const fields = { count: { type: 'int64' }, extra: { type: 'any' } } as const
  const value: Value = new Map<string, Value>([
    ['count', 5n],
    ['extra', new Map<string, Value>([['at', 5n]])],
  ])
  expect(JSON.parse(lineWriter(fields)(documentOf(value)))).toEqual({
    _id: ID,
    _createdAt: '2026-01-31T12:00:00.000001Z',
    count: 5,
    extra: { at: { type: 'int64', value: '5' } },
  })
})

it('a float64 is read as JSON writes it', () => {
  const read = lineReader('notes', { size: { type: 'float64' } }, false)
  for (const text of ['1e21', '1E+21', '1000000000000000000000', '"1e21"']) {
    const { value } = read(new TextEncoder().encode(`{"size":${text}}`))
    expect(value).toBe(encodeTagged(new Map([['size', 1e21]])))
  }
})
