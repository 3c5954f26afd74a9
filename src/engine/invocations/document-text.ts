/** How a Function sees a stored document. */
import type { StoredDocument } from '../../documents/store.ts'

/**
 * Stored JSON with the system fields. Names of a document's fields begin with a letter, so those
 * stand first unsorted.
 */
export function documentText({ id, createdAtMicros, sequence, text }: StoredDocument): string {
  const created = `"_createdAt":{"$t":"${createdAtMicros}"}`
  const system = `{${created},"_id":{"$d":"${id}"},"_revision":{"$i":"${sequence}"}`
  return text === '{}' ? `${system}}` : `${system},${text.slice(1)}`
}
