/**
 * Unique indexes of one schema and writes of another. A document has an entry if it has all fields
 * of the index; a field with a default is never absent for the index.
 */
import { canonicalJson } from '../../../value/canonical-json.ts'
import type { IndexManifest, TableManifest } from '../../../value/manifest.ts'
import type { FieldsJson } from '../../../value/validators.ts'
import type { Value, ValueObject } from '../../../value/values.ts'
import { innerOf } from './union-objects.ts'
import type { DocumentRules, WitnessSearch } from './witness-search.ts'

interface Tables {
  /** Declares the index. */
  readonly read: TableManifest
  readonly written: TableManifest
}

/**
 * Returns whether no write of `written` gives a document the key of another one. `checked` are its
 * unique indexes. With `hidden` of `any` the documents are also those of earlier Releases.
 */
export function isHarmless(
  { fields }: IndexManifest,
  {
    read,
    written,
    checked,
    hidden,
  }: Tables & { readonly checked: readonly IndexManifest[]; readonly hidden: 'valid' | 'any' },
): boolean {
  const isInvisible = fields.every(
    (name) => !Object.hasOwn(written.fields, name) && defaultOf(read.fields, name) === null,
  )
  // Such a write neither makes an entry nor changes one.
  if (isInvisible && hidden === 'valid') return true
  return checked.some((index) =>
    index.fields.every(
      (name) =>
        fields.includes(name) && defaultOf(read.fields, name) === defaultOf(written.fields, name),
    ),
  )
}

/**
 * Returns a document with an entry of the index that the writer may store twice; null if none was
 * found.
 */
export function sharedKey(
  search: WitnessSearch,
  {
    index,
    read,
    written,
    writer,
  }: Tables & { readonly index: IndexManifest; readonly writer: DocumentRules },
): ValueObject | null {
  const visible = search.minimal.object(written.fields)
  if (visible === null) return null
  const hidden = new Map<string, Value>()
  for (const name of index.fields) {
    const field = read.fields[name]
    if (field === undefined || defaultOf(read.fields, name) !== null) continue
    const own = Object.hasOwn(written.fields, name) ? written.fields[name] : undefined
    const value = search.minimal.of(innerOf(own ?? field))
    if (value === undefined) return null
    if (own === undefined) hidden.set(name, value)
    else visible.set(name, value)
  }
  const before = hidden.size === 0 ? null : new Map([...visible, ...hidden])
  const stored = writer.write(before, visible)
  return stored === null || !writer.reads(stored) ? null : stored
}

/** Returns canonical JSON; null for a field without a default. */
function defaultOf(fields: FieldsJson, name: string): string | null {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (field?.type !== 'optional' || field.default === undefined) return null
  return canonicalJson(field.default)
}
