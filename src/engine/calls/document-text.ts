/** The text of a document as Functions read it. */
import type { StoredDocument } from '../../documents/store.ts'

/**
 * Returns the stored JSON of the document, with its system fields in front. They never clash with
 * other fields, whose names start with a letter. The keys as a whole are not sorted.
 */
export function documentText({ id, createdAtMicros, sequence, text }: StoredDocument): string {
  const created = `"_createdAt":{"$t":"${createdAtMicros}"}`
  const system = `{${created},"_id":{"$d":"${id}"},"_revision":{"$i":"${sequence}"}`
  return text === '{}' ? `${system}}` : `${system},${text.slice(1)}`
}
