/**
 * The addresses that a request to a host from untrusted text may be sent to: those of the public
 * Internet. An address that is not certainly one of them is rejected.
 */
import { type AddressRange, isWithin, parseAddress, parseNetwork } from './address-ranges.ts'

/**
 * IANA has assigned no global unicast addresses outside of it. Parsed with the first address: that
 * takes a millisecond, which every command line would pay for.
 */
let ipv6Global: readonly AddressRange[] | null = null

/** `address` comes from a resolver: an IPv4 or IPv6 address, the latter without brackets. */
export function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address)
  // Unicast is what no row of IANA's registries of special purposes names.
  if (parsed === null || parsed.range() !== 'unicast') return false
  ipv6Global ??= [parseNetwork('2000::/3')!]
  return parsed.kind() === 'ipv4' || isWithin(address, ipv6Global)
}
