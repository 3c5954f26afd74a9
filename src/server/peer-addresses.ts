/** Derives the rate-limit key of a request: the IPv4 address or the IPv6 network of its peer. */
import { isIPv4, isIPv6 } from 'node:net'

export const FORWARDED = 'x-forwarded-for'

/**
 * Returns the address of the socket or, behind a trusted proxy, the last hop of X-Forwarded-For.
 * The proxy wrote only the last hop; the client may have forged those before it. Returns `unknown`
 * without any address.
 */
export function peerAddress(
  headers: Headers,
  socket: string | undefined,
  trustedProxy: boolean,
): string {
  const hop = trustedProxy ? headers.get(FORWARDED)?.split(',').at(-1)?.trim() : undefined
  return networkOf(hop) ?? networkOf(socket) ?? 'unknown'
}

/**
 * Returns an IPv4 address, or the /64 network of an IPv6 address, since one subscriber has all 2^64
 * addresses of it. Returns null for any other text.
 */
function networkOf(address: string | undefined): string | null {
  if (address === undefined) return null
  const mapped = /^::ffff:([0-9.]+)$/i.exec(address)?.[1] ?? address
  if (isIPv4(mapped)) return mapped
  const bare = /^[[]?([^\]%]*)/.exec(address)?.[1] ?? ''
  return isIPv6(bare) ? `${groupsOf(bare).slice(0, 4).join(':')}::/64` : null
}

/** Returns the eight groups of a valid IPv6 address, without leading zeros. */
function groupsOf(address: string): string[] {
  // A dotted IPv4 suffix stands for the last two groups, and only the first four are used.
  const [head = '', tail] = address.replace(/[0-9.]*\.[0-9.]*$/, '0:0').split('::')
  const split = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const before = split(head)
  const after = tail === undefined ? [] : split(tail)
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16).toString(16))
}
