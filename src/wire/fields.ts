/** Fields that many messages share. */
import { CAPABILITIES, type Capability, ROLES, type Role } from '../value/capabilities.ts'
import { type Id, type IdPrefix, idPattern } from '../value/ids.ts'
import { isName, NAME } from '../value/names.ts'
import { message } from './schema.ts'

/** A canonical identifier with this prefix. */
export function idField<P extends IdPrefix>(prefix: P) {
  return message(idPattern(prefix)).describe(`a canonical ${prefix}_ identifier`).as<Id<P>>()
}

const MICROS = 'canonical decimal microseconds'
const MICROS_MAX = String(2n ** 63n - 1n)
const U64_TEXT = 'a canonical unsigned 64-bit integer'
const U64_MAX = String(2n ** 64n - 1n)

/** Canonical decimals of one length are in the order of their texts. */
const isAtMost = (text: string, most: string): boolean =>
  text.length < most.length || (text.length === most.length && text <= most)

/** Unix microseconds as canonical decimal text; the databases keep 63 bits. */
export const Micros = message(/^(?:0|[1-9][0-9]{0,18})$/)
  .narrow((text, context) => isAtMost(text, MICROS_MAX) || context.mustBe(MICROS))
  .describe(MICROS)

/** An unsigned 64-bit integer as canonical decimal text. */
export const U64 = message(/^(?:0|[1-9][0-9]{0,19})$/)
  .narrow((text, context) => isAtMost(text, U64_MAX) || context.mustBe(U64_TEXT))
  .describe(U64_TEXT)

/** A revision that a request expects: as U64, or as a JSON integer that is exact. */
export const Revision = U64.or('0 <= number.integer <= 9007199254740991')

const NAME_RULE = '1 to 128 characters in NFC without control characters'

/** The name of an operator or of a device. */
export const Name = message(NAME)
  .narrow((text, context) => isName(text) || context.mustBe(NAME_RULE))
  .describe(NAME_RULE)

export const CapabilityField = message.enumerated<Capability[]>(...CAPABILITIES)

export const RoleField = message.enumerated<Role[]>(...ROLES)

/** Entries of a page that a list answers (wire decisions, section 5, Page). */
export const PAGE_MAX = 1_000
export const PAGE_DEFAULT = 100

/** `limit` of a list, from the text of the URL. */
export const PageLimit = message(/^[1-9][0-9]{0,3}$/)
  .pipe(Number)
  .to(`1 <= number.integer <= ${PAGE_MAX}`)
  .describe(`1 to ${PAGE_MAX}, ${PAGE_DEFAULT} where it is left out`)
