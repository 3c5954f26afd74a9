/** Finds the documents that the arguments of a call name: most Functions read or write them. */

/**
 * The start of a typed ID in stored JSON. A string argument may contain it too: that prefetches a
 * document that the code does not read, which is harmless.
 */
const TYPED_ID = '"$d":"'
const ID_CHARACTERS_MAX = 100

/** Most IDs that are extracted: arguments of 2 MiB may name 40,000 documents. */
const NAMED_MAX = 64

/** Returns the first 64 document IDs in `argumentsText`, which is stored JSON, with duplicates. */
export function namedDocuments(argumentsText: string): readonly string[] {
  const ids: string[] = []
  let position = argumentsText.indexOf(TYPED_ID)
  while (position !== -1 && ids.length < NAMED_MAX) {
    const start = position + TYPED_ID.length
    const end = argumentsText.indexOf('"', start)
    if (end === -1) break
    if (end > start && end - start <= ID_CHARACTERS_MAX) ids.push(argumentsText.slice(start, end))
    position = argumentsText.indexOf(TYPED_ID, end)
  }
  return ids
}
