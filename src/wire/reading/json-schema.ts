/** Schemas in the language of OpenAPI documents. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { Json } from '../../value/strict-json.ts'
import { isDocumentation, isRule, type JsonSchema } from '../rules.ts'
import type { Schema } from '../schema.ts'
import { typeOf } from './read.ts'

/**
 * Describes what a schema takes from a caller, as far as JSON Schema can say it: a rule that it
 * cannot is left to the description. What comes as text in a URL is described as what it means.
 * `checkedOnly` leaves out the rules that are documented with a schema and checked elsewhere.
 */
export function jsonSchemaOf(
  schema: Schema<unknown>,
  { checkedOnly = false }: { readonly checkedOnly?: boolean } = {},
): JsonSchema {
  const described = typeOf(schema).toJsonSchema({
    dialect: null,
    fallback: {
      predicate: ({ base, predicate }) =>
        isRule(predicate) && !(checkedOnly && isDocumentation(predicate))
          ? { ...base, ...predicate.jsonSchema }
          : base,
      morph: ({ base, out }) => out ?? base,
      patternIntersection: ({ base, pattern }) => ({ ...base, allOf: [{ pattern }] }),
    },
  })
  return ordered(described as Json) as JsonSchema
}

/** Sorts the branches of unions, whose order depends on which schema was read first. */
function ordered(json: Json): Json {
  if (Array.isArray(json)) return json.map(ordered)
  if (json === null || typeof json !== 'object') return json
  const entries = Object.entries(json).map(([keyword, value]): [string, Json] => {
    const each = ordered(value)
    if (keyword !== 'anyOf' || !Array.isArray(each)) return [keyword, each]
    return [keyword, each.toSorted((a, b) => (canonicalJson(a) < canonicalJson(b) ? -1 : 1))]
  })
  return Object.fromEntries(entries)
}
