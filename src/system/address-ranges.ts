/** Networks of IP addresses: what an address is compared with before a connection. */
import { isIPv4, isIPv6 } from 'node:net'
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'

export interface AddressRange {
  readonly network: IPv4 | IPv6
  readonly bits: number
}

/** Parses a network such as `10.0.0.0/8` or `fd00::/8`; null if the text is not exactly one. */
export function parseNetwork(text: string): AddressRange | null {
  const [, address = '', digits] = /^([0-9a-fA-F.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? []
  const network = parseAddress(address)
  if (network === null || !ipaddr.isValidCIDR(text)) return null
  const family = network.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  // A bit set behind the prefix suggests that the author meant another network.
  const first = family.networkAddressFromCIDR(text)
  return first.toString() === network.toString() ? { network, bits: Number(digits) } : null
}

/** Returns whether an address, as a resolver returns it, lies in a range of its own family. */
export function isWithin(address: string, ranges: readonly AddressRange[]): boolean {
  const parsed = parseAddress(address)
  if (parsed === null) return false
  return ranges.some(
    ({ network, bits }) => network.kind() === parsed.kind() && parsed.match(network, bits),
  )
}

/**
 * Returns null for text that is not an address, such as `127.1`, which ipaddr.js takes for one, and
 * for an address with a zone, which names an interface of this machine.
 */
export function parseAddress(text: string): IPv4 | IPv6 | null {
  const isAddress = isIPv4(text) || (isIPv6(text) && !text.includes('%'))
  return isAddress ? ipaddr.parse(text) : null
}
