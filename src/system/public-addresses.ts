/**
 * The addresses that a request to a host from untrusted text may be sent to: those of the public
 * Internet. An address that is not certainly one of them is rejected.
 */
import { isWithin, parseAddress, parseNetwork } from './address-ranges.ts'

/** IANA has assigned no global unicast addresses outside of it. */
const IPV6_GLOBAL = [parseNetwork('2000::/3')!]

/** `address` comes from a resolver: an IPv4 or IPv6 address, the latter without brackets. */
export function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address)
  // Unicast is what no row of IANA's registries of special purposes names.
  if (parsed === null || parsed.range() !== 'unicast') return false
  return parsed.kind() === 'ipv4' || isWithin(address, IPV6_GLOBAL)
}
