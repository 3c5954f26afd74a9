/** The arguments of an endpoint, by name from the path, the query and the JSON body. */
import { Fault } from '../../../errors/fault.ts'
import type { FunctionManifest } from '../../../value/manifest.ts'
import { isJsonObject, type Json, parseStrictJson, ROUNDED } from '../../../value/strict-json.ts'
import { keyPart } from '../../../value/validation-error.ts'
import type { ValueObject } from '../../../value/values.ts'
import type { PlainForms } from '../functions/forms.ts'

export interface Given {
  /** Decoded. */
  readonly path: ReadonlyMap<string, string>
  /** The query with its question mark; empty for none. */
  readonly search: string
  /** Null for a request without a body. */
  readonly json: Json
}

/** Parses a body; returns null for an empty one. Throws ValidationError. */
export function parseBody(bytes: Uint8Array): Json {
  return bytes.length === 0 ? null : parseStrictJson(bytes, ROUNDED)
}

/** Throws ARGUMENTS_INVALID, and REQUEST_INVALID for a query that is not UTF-8. */
export function readArguments(
  plainForms: PlainForms,
  definition: FunctionManifest,
  { path, search, json }: Given,
): ValueObject {
  const given = new Map<string, Json>()
  const add = (name: string, value: Json): void => {
    if (given.has(name)) throw invalid(`arguments${keyPart(name)}: given once`)
    given.set(name, value)
  }
  const addText = (name: string, text: string): void => {
    add(name, plainForms.parameter(definition, name, text))
  }
  for (const [name, text] of path) addText(name, text)
  for (const [name, text] of queryOf(search)) addText(name, text)
  if (json !== null) {
    if (!isJsonObject(json)) throw invalid('arguments: an object')
    for (const [name, value] of Object.entries(json)) add(name, value)
  }
  // Without a prototype, since a query may name `__proto__`.
  const all = Object.create(null) as { [name: string]: Json }
  for (const [name, value] of given) all[name] = value
  return plainForms.read(definition, all)
}

function invalid(detail: string): Fault {
  return new Fault('ARGUMENTS_INVALID', { detail })
}

/** Yields the parameters, decoded. The head of a request bounds their number. */
function* queryOf(search: string): Generator<readonly [name: string, text: string]> {
  if (search.length <= 1) return
  for (const part of search.slice(1).split('&')) {
    const at = part.indexOf('=')
    const [name, text] = at === -1 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
    yield [decoded(name), decoded(text)]
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw new Fault('REQUEST_INVALID', { detail: 'the query: percent-encoded UTF-8' })
  }
}
