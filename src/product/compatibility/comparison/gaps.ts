/**
 * The reasons why one schema cannot read what another writes, in words. The newer schema is that of
 * the reader or that of the writer; the words always describe the change from the older one to it.
 */
import type { LiteralJson } from '../../../value/validators.ts'
import type { Value } from '../../../value/values.ts'

/** Which of the two schemas is the newer one. */
export type Newer = 'reader' | 'writer'

/** The remedy of a change that a Release beside another cannot make. */
export type WayOut = 'default' | 'open union' | 'migration' | 'nothing'

export interface Change {
  readonly text: Readonly<Record<Newer, string>>
  readonly wayOut: Readonly<Record<Newer, WayOut>>
}

/** A value that the writer stores in place of `before`, which both read; absent for a new one. */
export interface Witness {
  readonly written: Value
  readonly before?: Value
}

export interface Gap {
  /** Parts behind the name of the table, such as `.tags[].name`. */
  readonly path: string
  readonly change: Change
  /** Returns null if no value was found that shows the gap. */
  readonly witness: () => Witness | null
}

const LITERAL_CHARACTERS_MAX = 40

function change(text: Change['text'], reader: WayOut, writer: WayOut = reader): Change {
  return { text, wayOut: { reader, writer } }
}

export const REQUIRED_ADDED = change(
  { reader: 'the required field is added', writer: 'the required field is removed' },
  'default',
)
export const ABSENCE_REJECTED = change(
  {
    reader: 'the optional field becomes required',
    writer: 'the required field becomes optional',
  },
  'default',
)
export const FIELD_UNDECLARED = change(
  {
    reader: 'the field is removed inside an array, a record or a union',
    writer: 'the field is added inside an array, a record or a union',
  },
  'nothing',
)
export const HIDDEN_UNKNOWN = change(
  {
    reader: 'the field is added and an earlier Release may have stored it',
    writer: 'the field is removed and an earlier Release may have stored it',
  },
  'migration',
)
export const HIDDEN_MIXED = change(
  {
    reader: 'the object becomes a union, whose members cannot keep hidden fields apart',
    writer: 'the union becomes an object, which keeps hidden fields of other members',
  },
  'nothing',
)
export const PATTERN_CHANGED = change(
  { reader: 'the pattern rejects other strings', writer: 'the pattern accepts other strings' },
  'migration',
  'nothing',
)
export const TOO_COMPLEX = change(
  { reader: 'too complex to compare', writer: 'too complex to compare' },
  'nothing',
)
export const UNIQUE_UNCHECKED = change(
  { reader: 'the unique index is added', writer: 'the unique index is removed' },
  'nothing',
)

/** The types of the reader and the writer differ, each a single one. */
export function typeChanged(reader: string, writer: string): Change {
  return change(
    { reader: `${writer} becomes ${reader}`, writer: `${reader} becomes ${writer}` },
    'migration',
  )
}

/** The writer has one kind of values more. */
export function valueRejected(shown: string, isUnion: boolean): Change {
  return change(
    { reader: `${shown} is no longer allowed`, writer: `${shown} becomes allowed` },
    'migration',
    isUnion ? 'open union' : 'nothing',
  )
}

export type Bound = 'minimum' | 'maximum' | 'minimum length' | 'maximum length' | 'maximum items'

/** Null stands for no bound. */
export function boundChanged(
  bound: Bound,
  reader: string | number | bigint | null,
  writer: string | number | bigint | null,
): Change {
  return change(
    { reader: moved(bound, writer, reader), writer: moved(bound, reader, writer) },
    'migration',
    'nothing',
  )
}

function moved(
  bound: Bound,
  before: string | number | bigint | null,
  after: string | number | bigint | null,
): string {
  if (before === null) return `the ${bound} ${after} is added`
  if (after === null) return `the ${bound} ${before} is removed`
  return `the ${bound} changes from ${before} to ${after}`
}

export function shownLiteral(literal: LiteralJson): string {
  if ('boolean' in literal) return String(literal.boolean)
  if ('int64' in literal) return literal.int64
  return shownText(literal.string)
}

export function shownText(text: string): string {
  if (text.length <= LITERAL_CHARACTERS_MAX) return JSON.stringify(text)
  return `${JSON.stringify(text.slice(0, LITERAL_CHARACTERS_MAX).toWellFormed()).slice(0, -1)}..."`
}

/** The text of each way out, behind the change and its example. */
export const WAYS_OUT: Readonly<Record<WayOut, string>> = {
  default: 'declare it with v.optional(...).default(...), which both Releases can read',
  'open union': 'make the union v.open(v.union(...)) in a Release before this one',
  migration: 'change the stored documents with a migration first',
  nothing: 'Releases that differ by this cannot serve side by side',
}
