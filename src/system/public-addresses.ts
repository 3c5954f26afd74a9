/**
 * Which addresses a request that somebody else's text names may be sent to: those of the public
 * Internet alone. Whatever is not surely one of them is refused.
 */
import { isIPv4, isIPv6 } from 'node:net'

type Range = readonly [prefix: readonly number[], bits: number]

/** IANA's IPv4 special-purpose registry, multicast and the reserved class E. */
const IPV4_REFUSED: readonly Range[] = [
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
]

/** Global unicast: mapped, compatible, NAT64, unique-local and link-local forms are outside. */
const IPV6_GLOBAL: Range = [[0x20], 3]
/** Teredo and other protocol assignments, documentation, 6to4, documentation. */
const IPV6_REFUSED: readonly Range[] = [
  [[0x20, 0x01, 0x00], 23],
  [[0x20, 0x01, 0x0d, 0xb8], 32],
  [[0x20, 0x02], 16],
  [[0x3f, 0xff, 0x00], 20],
]

/** `address` is what a resolver answers: an IPv4 or IPv6 address, the latter without brackets. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) {
    const bytes = address.split('.').map(Number)
    return !IPV4_REFUSED.some((range) => within(bytes, range))
  }
  // A zone names an interface of this machine.
  if (!isIPv6(address) || address.includes('%')) return false
  const bytes = ipv6Bytes(address)
  return within(bytes, IPV6_GLOBAL) && !IPV6_REFUSED.some((range) => within(bytes, range))
}

/** The form was checked: eight groups, or fewer around one `::`. */
function ipv6Bytes(address: string): number[] {
  // The URL parser writes an embedded IPv4 address as two groups.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [before = '', after] = groups.split('::')
  const head = pairs(before)
  const tail = pairs(after ?? '')
  const gap = new Array<number>(16 - head.length - tail.length).fill(0)
  return [...head, ...gap, ...tail]
}

function pairs(groups: string): number[] {
  if (groups === '') return []
  return groups.split(':').flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
}

function within(bytes: readonly number[], [prefix, bits]: Range): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 255 : (255 << (8 - (bits - bit))) & 255
    const expected = prefix[bit / 8] ?? 0
    if (((bytes[bit / 8]! ^ expected) & mask) !== 0) return false
  }
  return true
}
