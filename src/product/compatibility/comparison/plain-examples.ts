/** Examples of documents as plain JSON, short enough for a message. */
import { valueToPlain } from '../../../value/plain.ts'
import type { Json } from '../../../value/strict-json.ts'
import type { ValueObject } from '../../../value/values.ts'

/** Maximum number of characters of an example. */
export const EXAMPLE_CHARACTERS_MAX = 300
const TEXT_CHARACTERS_MAX = 40
const ITEMS_MAX = 4

export function plainText(document: ValueObject): string {
  const text = JSON.stringify(shortened(valueToPlain(document)))
  if (text.length <= EXAMPLE_CHARACTERS_MAX) return text
  return `${text.slice(0, EXAMPLE_CHARACTERS_MAX - 3).toWellFormed()}...`
}

/** Shortens long strings, arrays and records, and says how long they are. */
function shortened(json: Json): Json {
  if (typeof json === 'string') {
    if (json.length <= TEXT_CHARACTERS_MAX) return json
    const start = json.slice(0, TEXT_CHARACTERS_MAX / 2).toWellFormed()
    return `${start}... (${json.length} characters)`
  }
  if (Array.isArray(json)) {
    if (json.length <= ITEMS_MAX) return json.map(shortened)
    return [...json.slice(0, ITEMS_MAX / 2).map(shortened), `... (${json.length} items)`]
  }
  if (json === null || typeof json !== 'object') return json
  const entries = Object.entries(json).map(([name, item]) => [name, shortened(item)] as const)
  const isLong = entries.length > 10 * ITEMS_MAX
  if (!isLong) return Object.fromEntries(entries)
  return { ...Object.fromEntries(entries.slice(0, ITEMS_MAX)), '...': `${entries.length} entries` }
}
