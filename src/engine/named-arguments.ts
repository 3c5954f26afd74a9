/** The documents that the arguments of a call name: most Functions read or write them. */

/** In stored JSON. A text that looks like one names a document that nobody asks for: no harm. */
const TYPED_ID = /"\$d":"([^"]{1,100})"/g

/** Arguments of 2 MiB may name 40,000, of which few are worth a look ahead. */
const NAMED_MAX = 64

/** Their IDs, the first 64, as often as they stand there. `argumentsText` is stored JSON. */
export function namedDocuments(argumentsText: string): readonly string[] {
  const ids: string[] = []
  for (const [, id] of argumentsText.matchAll(TYPED_ID)) {
    ids.push(id!)
    if (ids.length === NAMED_MAX) break
  }
  return ids
}
