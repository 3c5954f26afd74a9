/** Who a request comes from, as a key for rate limits: an address, or the network of one. */
import { isIPv4, isIPv6 } from 'node:net'

export const FORWARDED = 'x-forwarded-for'

/**
 * The socket's address, or the last hop of X-Forwarded-For behind a trusted proxy: only that one
 * was written by the proxy, those before it by the sender of the request. `unknown` where there is
 * none.
 */
export function peerAddress(
  headers: Headers,
  socket: string | undefined,
  trustedProxy: boolean,
): string {
  const hop = trustedProxy ? headers.get(FORWARDED)?.split(',').at(-1)?.trim() : undefined
  return networkOf(hop) ?? networkOf(socket) ?? 'unknown'
}

/** One subscriber has 2^64 addresses of IPv6, so those count together; null for any other text. */
function networkOf(address: string | undefined): string | null {
  if (address === undefined) return null
  const mapped = /^::ffff:([0-9.]+)$/i.exec(address)?.[1] ?? address
  if (isIPv4(mapped)) return mapped
  const bare = /^[[]?([^\]%]*)/.exec(address)?.[1] ?? ''
  return isIPv6(bare) ? `${groupsOf(bare).slice(0, 4).join(':')}::/64` : null
}

/** The eight groups of a valid address, without leading zeros. */
function groupsOf(address: string): string[] {
  // A dotted end stands for two groups, neither of which is among the first four.
  const [head = '', tail] = address.replace(/[0-9.]*\.[0-9.]*$/, '0:0').split('::')
  const split = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const before = split(head)
  const after = tail === undefined ? [] : split(tail)
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16).toString(16))
}
