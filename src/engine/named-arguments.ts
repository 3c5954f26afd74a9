/** The documents that the arguments of a call name: most Functions read or write them. */

/** In stored JSON. A text that looks like one names a document that nobody asks for: no harm. */
const TYPED_ID = /"\$d":"([^"]{1,100})"/g

/** Their IDs, as often as they stand there. `argumentsText` is stored JSON. */
export function namedDocuments(argumentsText: string): readonly string[] {
  return Array.from(argumentsText.matchAll(TYPED_ID), ([, id]) => id!)
}
