/**
 * Texts of documents as the databases store them: one control character, which Stored JSON never
 * has, for the name of a field with its punctuation, and for the begin of an encoded integer, time
 * or ID. The names were a tenth of a document of 250 characters.
 */
import { assert } from '../errors/assert.ts'
import type { FieldShape } from '../value/schema/field-shapes.ts'
import { parsed } from './index-rows.ts'

/** The codes of all tables, from 1 on. */
const VALUE_PARTS = ['{"$i":"', '{"$t":"', '{"$d":"']
/** The code of the first name of a table. */
const FIRST_NAME = VALUE_PARTS.length + 1
/** Names with a code: the codes end before the space. The migration of the schema has it too. */
const NAMES_MAX = 32 - FIRST_NAME

/** A name that JSON does not escape. */
const NAME = /^[A-Za-z0-9_]+$/
/** Parts of a text that may have a code. */
const PARTS = /\{"\$[dit]":"|[{,]"[A-Za-z0-9_]+":/g
const CODES = /[\x01-\x1f]/g

interface Table {
  readonly names: readonly string[]
  readonly codes: ReadonlyMap<string, string>
  /** The part of each code where it begins the text, and where it does not. */
  readonly first: readonly string[]
  readonly later: readonly string[]
}

const NO_NAMES = tableWith([])

/** The field names that have a code, by table. A code never gets another meaning. */
export class CompactTexts {
  readonly #tables = new Map<string, Table>()

  /** Sets the names of a table: those that it had, and more. */
  set(table: string, names: readonly string[]): void {
    this.#tables.set(table, tableWith(names))
  }

  /** Returns the names of all tables. */
  names(): ReadonlyMap<string, readonly string[]> {
    return new Map([...this.#tables].map(([table, { names }]) => [table, names]))
  }

  /** Returns the names of a table with those of the top level of a shape. */
  namesWith(table: string, shape: FieldShape): readonly string[] {
    const { names } = this.#of(table)
    if (shape === 'any') return names
    const added = Object.keys(shape).filter((name) => NAME.test(name) && !names.includes(name))
    return [...names, ...added].slice(0, NAMES_MAX)
  }

  /** Returns a text as it is stored. */
  compact(table: string, text: string): string {
    const { codes } = this.#of(table)
    return text.replace(PARTS, (part, at: number) => {
      // A nested object may begin with a name too, but its code would read as a comma.
      const isNested = at > 0 && part[0] === '{' && part[2] !== '$'
      return (isNested ? undefined : codes.get(part)) ?? part
    })
  }

  /** Returns the text that was stored. Asserts that its names are known. */
  expand(table: string, stored: string): string {
    CODES.lastIndex = 0
    let match = CODES.exec(stored)
    if (match === null) return stored
    const { first, later } = this.#of(table)
    let text = ''
    let end = 0
    for (; match !== null; match = CODES.exec(stored)) {
      const { index } = match
      const part = (index === 0 ? first : later)[stored.charCodeAt(index)]
      assert(part !== undefined, 'a document has a field without a name')
      text += stored.slice(end, index) + part
      end = index + 1
    }
    return text + stored.slice(end)
  }

  #of(table: string): Table {
    return this.#tables.get(table) ?? NO_NAMES
  }
}

/** Reads the column with the names of a table. */
export function parseNames(text: string): readonly string[] {
  const json = parsed(text)
  assert(
    Array.isArray(json) &&
      json.length <= NAMES_MAX &&
      json.every((name) => typeof name === 'string' && NAME.test(name)),
    'the field names of a table are not a list of names',
  )
  return json
}

function tableWith(names: readonly string[]): Table {
  const first = ['', ...VALUE_PARTS, ...names.map((name) => `{"${name}":`)]
  const later = ['', ...VALUE_PARTS, ...names.map((name) => `,"${name}":`)]
  const codes = new Map<string, string>()
  for (const parts of [first, later]) {
    for (const [code, part] of parts.entries()) codes.set(part, String.fromCharCode(code))
  }
  codes.delete('')
  return { names, codes, first, later }
}
