/**
 * Documents that a result names instead of holding them: a runner that returns one unchanged sends
 * `{"$r":0}`, its place among all that the call was answered with.
 */
import type { StoredDocument } from '../documents/store.ts'
import { Malformed } from '../value/malformed.ts'
import { fromStoredJson } from '../value/stored.ts'
import { VALUE_DEPTH_MAX, type Value } from '../value/values.ts'
import { documentText } from './document-text.ts'
import { RESULT_BYTES_MAX } from './limits.ts'

/** The content as the runner would have sent it: JavaScript's int64 is a timestamp too. */
export function returnedContent(document: StoredDocument): unknown {
  return returned(JSON.parse(documentText(document)))
}

function returned(json: unknown): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (Array.isArray(json)) return json.map(returned)
  const content = json as Readonly<Record<string, unknown>>
  const keys = Object.keys(content)
  if (keys.length === 1) {
    if (keys[0] === '$t') return { $i: content.$t }
    if (keys[0] === '$d') return content.$d
  }
  return Object.fromEntries(keys.map((key) => [key, returned(content[key])]))
}

/** Raises Malformed where it is no value, or names what the call was not given. */
export function returnedValue(json: unknown, documents: readonly StoredDocument[]): Value {
  let characters = 0
  const expand = (part: unknown, depth: number): unknown => {
    if (typeof part !== 'object' || part === null) return part
    if (depth > VALUE_DEPTH_MAX) throw new Malformed(`at most ${VALUE_DEPTH_MAX} levels`)
    if (Array.isArray(part)) return part.map((item) => expand(item, depth + 1))
    if (Object.hasOwn(part, '$r')) {
      const document = documents[Number((part as { readonly $r: unknown }).$r)]
      if (document === undefined) throw new Malformed('a document of this call')
      characters += document.text.length
      if (characters > RESULT_BYTES_MAX) throw new Malformed(`at most ${RESULT_BYTES_MAX} bytes`)
      return returnedContent(document)
    }
    const entries = Object.entries(part)
    return Object.fromEntries(entries.map(([key, item]) => [key, expand(item, depth + 1)]))
  }
  return fromStoredJson(documents.length === 0 ? json : expand(json, 0))
}
