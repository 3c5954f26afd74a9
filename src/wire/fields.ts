/** Fields that many messages share. */
import { CAPABILITIES, ROLES, SESSION_PURPOSES } from '../value/capabilities.ts'
import { type Id, type IdPrefix, idPattern } from '../value/ids.ts'
import { isName, NAME } from '../value/names.ts'
import { TARGET } from '../value/targets.ts'
import { atMostCharacters, documentation, type JsonSchema } from './rules.ts'
import { declaredSchema, type Schema, schema } from './schema.ts'

/** A text of this form. `rule` describes it in violations and in the OpenAPI document. */
export function text(pattern: RegExp, rule: string): Schema<string> {
  return schema([pattern, '@', rule])
}

/** A text of at most this many characters. */
export function textUpTo(max: number): Schema<string> {
  return schema(['string', ':', atMostCharacters(max)])
}

/** An exact JSON integer. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): Schema<number> {
  return schema(`${min} <= number % 1 <= ${max}`)
}

/** A list of at most this many entries. */
export function listUpTo<T>(entry: Schema<T>, max: number): Schema<T[]> {
  return declaredSchema([[entry, '[]'], '&', `unknown[] <= ${max}`])
}

/** A canonical identifier with this prefix. */
export function idField<P extends IdPrefix>(prefix: P): Schema<Id<P>> {
  return declaredSchema([idPattern(prefix), '@', `a canonical ${prefix}_ identifier`])
}

const MICROS_MAX = String(2n ** 63n - 1n)
const U64_MAX = String(2n ** 64n - 1n)

/** Compares canonical decimals: those of equal length sort as texts. */
const isAtMost = (text: string, most: string): boolean =>
  text.length < most.length || (text.length === most.length && text <= most)

/** Unix microseconds as canonical decimal text, within the 63 bits of the databases. */
export const Micros = schema([
  [/^(?:0|[1-9][0-9]{0,18})$/, ':', (decimal: string) => isAtMost(decimal, MICROS_MAX)],
  '@',
  'canonical decimal microseconds',
])

/** An unsigned 64-bit integer as canonical decimal text. */
export const U64 = schema([
  [/^(?:0|[1-9][0-9]{0,19})$/, ':', (decimal: string) => isAtMost(decimal, U64_MAX)],
  '@',
  'a canonical unsigned 64-bit integer',
])

/** An expected revision: U64, or an exact JSON integer. */
export const Revision = schema([U64, '|', integer(0)])

/** The name of an operator or of a device. */
export const Name = schema([
  [NAME, ':', isName],
  '@',
  '1 to 128 characters in NFC without control characters',
])

export const CapabilityField = schema(['===', ...CAPABILITIES])

export const RoleField = schema(['===', ...ROLES])

export const PurposeField = schema(['===', ...SESSION_PURPOSES])

/**
 * Adds keywords for the OpenAPI document: rules for callers that other code checks, such as those
 * across fields. The schema accepts the values of `base`.
 */
export function documented<T>(base: Schema<T>, keywords: JsonSchema): Schema<T> {
  return declaredSchema([base, ':', documentation(keywords)])
}

/** A text of at most this many characters that is a secret, as `format` tells clients. */
export function secretUpTo(max: number): Schema<string> {
  return documented(textUpTo(max), { format: SECRET_FORMAT })
}

/** The format of secrets (OpenAPI Format Registry). */
export const SECRET_FORMAT = 'password'

/** A short text. The look-up checks that it is a target. */
export const TargetField = documented(textUpTo(128), {
  pattern: TARGET.source,
  description: 'a target such as channel:production',
})

/** Entries of a page of a list (contract/wire.md, Pages). */
export const PAGE_MAX = 1_000
export const PAGE_DEFAULT = 100

const PAGE_LIMIT = `1 to ${PAGE_MAX}, ${PAGE_DEFAULT} where it is left out`

/** `limit` of a list, parsed from the URL. */
export const PageLimit = schema([
  [text(/^[1-9][0-9]{0,3}$/, PAGE_LIMIT), '=>', Number],
  '|>',
  [integer(1, PAGE_MAX), '@', PAGE_LIMIT],
])
