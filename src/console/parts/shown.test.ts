import { describe, expect, test } from 'vitest'
import { Block, Identifier, labelOf, NamedOption } from './shown.tsx'
import { Table } from './table.tsx'

const HOSTILE = 'a\u202eb\u200b<img src=x>'
const VISIBLE = 'a\\u{202e}b\\u{200b}<img src=x>'

/** The properties of the element that a part makes. */
const propertiesOf = (element: { readonly props: unknown }) =>
  element.props as Readonly<Record<string, unknown>>

describe('stored text in attributes and options', () => {
  test('the label of a block has no invisible character', () => {
    const block = propertiesOf(Block({ text: HOSTILE, label: HOSTILE }))
    expect(block['aria-label']).toBe(VISIBLE)
    expect(block.children).toContain(VISIBLE)
  })

  test('the label of a table has no invisible character', () => {
    const table = Table({ label: HOSTILE, rows: [], columns: [], keyOf: () => '' })
    expect(propertiesOf(table)['aria-label']).toBe(VISIBLE)
  })

  test('the name of a choice has no invisible character, and its value is unchanged', () => {
    const option = propertiesOf(NamedOption({ value: HOSTILE, name: HOSTILE }))
    expect([option.value, option.children]).toEqual([HOSTILE, VISIBLE])
  })

  test('an identifier has no invisible character', () => {
    expect(propertiesOf(Identifier({ id: HOSTILE })).children).toBe(VISIBLE)
  })

  test('a long label is cut, with its length', () => {
    const label = labelOf('x'.repeat(1_000_000))
    expect(label).toBe(`${'x'.repeat(160)}… (1,000,000 characters)`)
  })
})
