/** Fields that many messages share. */
import { CAPABILITIES, type Capability, ROLES, type Role } from '../value/capabilities.ts'
import { type Id, type IdPrefix, isId } from '../value/ids.ts'
import { isName } from '../value/names.ts'
import { message } from './schema.ts'

/** A canonical identifier with this prefix. */
export function idField<P extends IdPrefix>(prefix: P) {
  return message('string <= 32').narrow((text, context): text is Id<P> =>
    isId(prefix, text) ? true : context.mustBe(`a canonical ${prefix}_ identifier`),
  )
}

/** Unix microseconds as canonical decimal text. */
export const Micros = message('string <= 19').narrow((text, context) =>
  /^(?:0|[1-9][0-9]*)$/.test(text) ? true : context.mustBe('canonical decimal microseconds'),
)

/** An unsigned 64-bit integer as canonical decimal text. */
export const U64 = message('string <= 20').narrow((text, context) =>
  /^(?:0|[1-9][0-9]*)$/.test(text) && BigInt(text) < 2n ** 64n
    ? true
    : context.mustBe('a canonical unsigned 64-bit integer'),
)

/** A revision that a request expects: as U64, or as a JSON integer that is exact. */
export const Revision = U64.or('0 <= number.integer <= 9007199254740991')

/** The name of an operator or of a device. */
export const Name = message('string').narrow((text, context) =>
  isName(text) ? true : context.mustBe('1 to 128 characters in NFC without control characters'),
)

export const CapabilityField = message.enumerated<Capability[]>(...CAPABILITIES)

export const RoleField = message.enumerated<Role[]>(...ROLES)
