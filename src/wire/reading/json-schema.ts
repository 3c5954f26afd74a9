/** Converts schemas to JSON Schema for the OpenAPI document. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { Json } from '../../value/strict-json.ts'
import { isDocumentation, isRule, type JsonSchema } from '../rules.ts'
import type { Schema } from '../schema.ts'
import { compiledType } from './read.ts'

/**
 * Returns the JSON Schema of the data that a schema accepts. Rules that JSON Schema cannot express
 * are in descriptions. Texts in a URL are described by the type that they are converted to.
 * `checkedOnly` omits rules that are documented with a schema but checked by other code.
 */
export function jsonSchemaOf(
  schema: Schema<unknown>,
  { checkedOnly = false }: { readonly checkedOnly?: boolean } = {},
): JsonSchema {
  const described = compiledType(schema).toJsonSchema({
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

/** Sorts the branches of unions, whose order depends on the order of compilation. */
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
