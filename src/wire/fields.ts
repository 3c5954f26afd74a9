/** Fields that many messages share. */
import * as z from 'zod'
import { CAPABILITIES, ROLES } from '../value/capabilities.ts'
import { type Id, type IdPrefix, idPattern } from '../value/ids.ts'
import { isName, NAME } from '../value/names.ts'
import { TARGET } from '../value/targets.ts'
import { documented } from './schema.ts'

/** A text of this form; `rule` tells it to who sends another one and to who reads of it. */
export function text(pattern: RegExp, rule: string): z.ZodString {
  // A union tells the rules of all its branches only where each of them was aborted.
  return z.string().regex(pattern, { abort: true }).describe(rule)
}

/** A canonical identifier with this prefix. */
export function idField<P extends IdPrefix>(prefix: P): z.ZodType<Id<P>> {
  const field: z.ZodType = text(idPattern(prefix), `a canonical ${prefix}_ identifier`)
  return field as z.ZodType<Id<P>>
}

const MICROS_MAX = String(2n ** 63n - 1n)
const U64_MAX = String(2n ** 64n - 1n)

/** Canonical decimals of one length are in the order of their texts. */
const isAtMost = (text: string, most: string): boolean =>
  text.length < most.length || (text.length === most.length && text <= most)

/** Unix microseconds as canonical decimal text; the databases keep 63 bits. */
export const Micros = text(/^(?:0|[1-9][0-9]{0,18})$/, 'canonical decimal microseconds').refine(
  (decimal) => isAtMost(decimal, MICROS_MAX),
)

/** An unsigned 64-bit integer as canonical decimal text. */
export const U64 = text(/^(?:0|[1-9][0-9]{0,19})$/, 'a canonical unsigned 64-bit integer').refine(
  (decimal) => isAtMost(decimal, U64_MAX),
)

/** A revision that a request expects: as U64, or as a JSON integer that is exact. */
export const Revision = z.union([U64, z.int().min(0)])

/** The name of an operator or of a device. */
export const Name = text(NAME, '1 to 128 characters in NFC without control characters').refine(
  isName,
)

export const CapabilityField = z.enum(CAPABILITIES)

export const RoleField = z.enum(ROLES)

/** Read as any short text: that it is a target is checked where it is looked up. */
export const TargetField = documented(z.string().max(128), {
  pattern: TARGET.source,
  description: 'a target such as channel:production',
})

/** Entries of a page that a list answers (wire decisions, section 5, Page). */
export const PAGE_MAX = 1_000
export const PAGE_DEFAULT = 100

const PAGE_LIMIT = `1 to ${PAGE_MAX}, ${PAGE_DEFAULT} where it is left out`

/** `limit` of a list, from the text of the URL. */
export const PageLimit = text(/^[1-9][0-9]{0,3}$/, PAGE_LIMIT)
  .transform(Number)
  .pipe(z.int().min(1).max(PAGE_MAX).describe(PAGE_LIMIT))
