/** The documents that the arguments of a call name: most Functions read or write them. */

/** In stored JSON. A text that looks like one names a document that nobody asks for: no harm. */
const TYPED_ID = '"$d":"'
const ID_CHARACTERS_MAX = 100

/** Arguments of 2 MiB may name 40,000, of which few are worth a look ahead. */
const NAMED_MAX = 64

/** Their IDs, the first 64, as often as they stand there. `argumentsText` is stored JSON. */
export function namedDocuments(argumentsText: string): readonly string[] {
  const ids: string[] = []
  let at = argumentsText.indexOf(TYPED_ID)
  while (at !== -1 && ids.length < NAMED_MAX) {
    const from = at + TYPED_ID.length
    const end = argumentsText.indexOf('"', from)
    if (end === -1) break
    if (end > from && end - from <= ID_CHARACTERS_MAX) ids.push(argumentsText.slice(from, end))
    at = argumentsText.indexOf(TYPED_ID, end)
  }
  return ids
}
