import { expect, test } from 'vitest'
import { functionManifest } from '../../../../testing/products.ts'
import { PlainForms } from './forms.ts'

const definition = functionManifest('notes.text', { returns: { type: 'string' } })
const tagged = (length: number) => JSON.stringify({ type: 'string', value: 'x'.repeat(length) })

test('the plain text of a cached result is kept, and dropped with all others at the bound', () => {
  const forms = new PlainForms({ plainCharacters: 1_000 })
  const write = (length: number) => forms.writeCached(definition, tagged(length), 'number')
  const first = write(100)
  expect(first.text).toBe(JSON.stringify('x'.repeat(100)))
  expect(write(100)).toBe(first)
  for (const length of [150, 160]) write(length)
  expect(write(100)).not.toBe(first)
})

test('a text beyond the bound is not kept, and removes no other', () => {
  const forms = new PlainForms({ plainCharacters: 1_000 })
  const write = (length: number) => forms.writeCached(definition, tagged(length), 'number')
  const short = write(100)
  expect(write(400).text).toHaveLength(402)
  expect(write(400)).not.toBe(write(400))
  expect(write(100)).toBe(short)
})
