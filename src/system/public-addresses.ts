/**
 * Which addresses a request that somebody else's text names may be sent to: those of the public
 * Internet alone. Whatever is not surely one of them is refused.
 */
import { type AddressRange, isWithin } from './address-ranges.ts'

type Range = readonly [prefix: readonly number[], bits: number]

const family = (family: 4 | 6, ranges: readonly Range[]): readonly AddressRange[] =>
  ranges.map(([prefix, bits]) => ({ prefix, bits, family }))

/** IANA's IPv4 special-purpose registry, multicast and the reserved class E. */
const IPV4_REFUSED = family(4, [
  [[0], 8],
  [[10], 8],
  [[100, 64], 10],
  [[127], 8],
  [[169, 254], 16],
  [[172, 16], 12],
  [[192, 0, 0], 24],
  [[192, 0, 2], 24],
  [[192, 88, 99], 24],
  [[192, 168], 16],
  [[198, 18], 15],
  [[198, 51, 100], 24],
  [[203, 0, 113], 24],
  [[224], 4],
  [[240], 4],
])
const IPV4_ALL = family(4, [[[0], 0]])

/** Global unicast: mapped, compatible, NAT64, unique-local and link-local forms are outside. */
const IPV6_GLOBAL = family(6, [[[0x20], 3]])
/** Teredo and other protocol assignments, documentation, 6to4, documentation. */
const IPV6_REFUSED = family(6, [
  [[0x20, 0x01, 0x00], 23],
  [[0x20, 0x01, 0x0d, 0xb8], 32],
  [[0x20, 0x02], 16],
  [[0x3f, 0xff, 0x00], 20],
])

/** `address` is what a resolver answers: an IPv4 or IPv6 address, the latter without brackets. */
export function isPublicAddress(address: string): boolean {
  if (isWithin(address, IPV4_ALL)) return !isWithin(address, IPV4_REFUSED)
  return isWithin(address, IPV6_GLOBAL) && !isWithin(address, IPV6_REFUSED)
}
