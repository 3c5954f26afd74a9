/**
 * Document references in results: for a document that a Function returns unchanged, the runner
 * sends `{"$r":0}`, its index among all documents that the call received.
 */
import type { StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { findNamed, type NamedObjects, ResultTooLong } from '../../value/schema/result-encoding.ts'
import { fromStoredJson } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { VALUE_DEPTH_MAX, type Value } from '../../value/values.ts'
import { RESULT_BYTES_MAX } from '../limits.ts'
import { documentText } from './document-text.ts'
import { limitText } from './limit-texts.ts'

/**
 * Returns the document as JavaScript code returns it, in stored JSON: a timestamp is a bigint there
 * and an ID is a string.
 */
export function returnedContent(document: StoredDocument): unknown {
  return returnedJson(documentText(document))
}

function returnedJson(text: string): unknown {
  return untyped(JSON.parse(text))
}

/** The documents that results reference. */
export const RETURNED_DOCUMENTS: NamedObjects = {
  contentOf: (document) => returnedContent(document as StoredDocument),
  parse: returnedJson,
}

/** Replaces timestamps and IDs in place. The caller owns `json`. */
function untyped(json: unknown): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (Array.isArray(json)) {
    for (let i = 0; i < json.length; i++) json[i] = untyped(json[i])
    return json
  }
  const content = json as Record<string, unknown>
  const keys = Object.keys(content)
  if (keys.length === 1) {
    if (keys[0] === '$t') return { $i: content.$t }
    if (keys[0] === '$d') return content.$d
  }
  for (const key of keys) {
    const part = content[key]
    if (typeof part === 'object') content[key] = untyped(part)
  }
  return content
}

/**
 * Returns the value of a result, with the documents in place of their references. Throws
 * ValidationError for what is not a value and for a reference to no document of the call, and
 * ResultTooLong.
 */
export function returnedValue(json: unknown, documents: readonly StoredDocument[]): Value {
  let characters = 0
  const expand = (part: unknown, depth: number): unknown => {
    if (typeof part !== 'object' || part === null) return part
    if (depth > VALUE_DEPTH_MAX) throw new ValidationError(`at most ${VALUE_DEPTH_MAX} levels`)
    if (Array.isArray(part)) return part.map((item) => expand(item, depth + 1))
    const document = findNamed(part, documents)
    if (document !== null) {
      const text = documentText(document)
      characters += text.length
      if (characters > RESULT_BYTES_MAX) throw new ResultTooLong()
      return returnedJson(text)
    }
    const entries = Object.entries(part)
    return Object.fromEntries(entries.map(([key, item]) => [key, expand(item, depth + 1)]))
  }
  return fromStoredJson(documents.length === 0 ? json : expand(json, 0))
}

/** Calls `read` and throws LIMIT_EXCEEDED for a result whose references expand to too much. */
export function withinBounds<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ResultTooLong)) throw error
    throw new Fault('LIMIT_EXCEEDED', { detail: limitText('result', 'query') })
  }
}
