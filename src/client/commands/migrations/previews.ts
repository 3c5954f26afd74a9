/** The documents of a dry run, as `svc migrations run --dry-run` prints them. */
import { valueToPlain } from '../../../value/plain.ts'
import type { Json } from '../../../value/strict-json.ts'
import { decodeTagged } from '../../../value/tagged.ts'
import type { ValueObject } from '../../../value/values.ts'
import type { MigrationActed, MigrationPreview } from '../../../wire/migrations/migrations.ts'

/** Sentences and, for each document, the fields that change. */
export function previewLines({ name, documents }: MigrationActed): string[] {
  const shown = documents ?? []
  if (shown.length === 0) return [`${name} would find no documents.`]
  const failed = shown.filter(({ error }) => error !== null).length
  const head = `${name} would do this with the first ${shown.length} documents; nothing is stored.`
  const end = failed === 0 ? [] : ['It would stop at the last one.']
  return [head, ...shown.flatMap(documentLines), ...end]
}

function documentLines({ documentId, before, after, error }: MigrationPreview): string[] {
  if (error !== null) return [documentId, `  ${error.code}: ${error.message}`]
  const [old, next] = [fieldsOf(before), fieldsOf(after)]
  const changes = [...new Set([...old.keys(), ...next.keys()])]
    .filter((field) => old.get(field) !== next.get(field))
    .map((field) => `  ${field}: ${old.get(field) ?? 'absent'} -> ${next.get(field) ?? 'absent'}`)
  return [documentId, ...(changes.length === 0 ? ['  unchanged'] : changes)]
}

/** Plain JSON text of each field. */
function fieldsOf(tagged: unknown): ReadonlyMap<string, string> {
  const value = decodeTagged(tagged as Json) as ValueObject
  return new Map([...value].map(([name, field]) => [name, JSON.stringify(valueToPlain(field))]))
}
