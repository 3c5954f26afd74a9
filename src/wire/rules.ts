/** Rules without a keyword of arktype: predicates with a description. */

/** A JSON Schema of draft 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** A predicate with its description and, where possible, its JSON Schema. */
export interface Rule<T> {
  (data: T): boolean
  readonly expected: string
  readonly jsonSchema: JsonSchema
}

export function rule<T>(
  expected: string,
  fits: (data: T) => boolean,
  jsonSchema: JsonSchema = {},
): Rule<T> {
  return Object.assign((data: T) => fits(data), { expected, jsonSchema })
}

/** Keywords for the OpenAPI document only. Other code checks their rule. */
export function documentation(jsonSchema: JsonSchema): Rule<unknown> & { isChecked: false } {
  return Object.assign(
    rule('valid', () => true, jsonSchema),
    { isChecked: false as const },
  )
}

export function isDocumentation(predicate: Rule<unknown>): boolean {
  return 'isChecked' in predicate
}

export function isRule(predicate: object): predicate is Rule<unknown> {
  return 'expected' in predicate && 'jsonSchema' in predicate
}

/** Counts code points, as `maxLength` of JSON Schema does; arktype counts UTF-16 code units. */
export function atMostCharacters(max: number): Rule<string> {
  return rule(
    `at most ${max} characters`,
    (text) => text.length <= max || (text.length <= 2 * max && Array.from(text).length <= max),
    { maxLength: max },
  )
}

/** 1 to `max` entries. */
export function someEntries(max: number, expected: string): Rule<readonly unknown[]> {
  return rule(expected, ({ length }) => length > 0 && length <= max)
}

/** Excludes lists, which arktype accepts as objects without required fields. */
export const NO_LIST: Rule<unknown> = rule('an object', (data) => !Array.isArray(data))
