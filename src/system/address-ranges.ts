/** Ranges of IP addresses, as bytes: what an address is compared with before a connection. */
import { isIPv4, isIPv6 } from 'node:net'

export interface AddressRange {
  /** 4 or 16 bytes at most; those that are left out are zero. */
  readonly prefix: readonly number[]
  readonly bits: number
  readonly family: 4 | 6
}

/** A network such as `10.0.0.0/8` or `fd00::/8`; null where the text is not exactly one. */
export function parseNetwork(text: string): AddressRange | null {
  const [, address, digits] = /^([0-9a-fA-F.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? []
  const bytes = address === undefined ? null : addressBytes(address)
  const bits = Number(digits)
  if (bytes === null || bits > bytes.length * 8) return null
  const range = { prefix: bytes, bits, family: bytes.length === 4 ? 4 : 6 } as const
  // A bit behind the prefix says that its author meant another network.
  const rest = bytes.map((byte, i) => byte & ~maskOf(bits, i) & 255)
  return rest.every((byte) => byte === 0) ? range : null
}

/** Whether `address`, as a resolver answers it, lies in one of the ranges. */
export function isWithin(address: string, ranges: readonly AddressRange[]): boolean {
  const bytes = addressBytes(address)
  if (bytes === null) return false
  const family = bytes.length === 4 ? 4 : 6
  return ranges.some((range) => range.family === family && contains(range, bytes))
}

function contains({ prefix, bits }: AddressRange, bytes: readonly number[]): boolean {
  for (let i = 0; i * 8 < bits; i++) {
    if (((bytes[i]! ^ (prefix[i] ?? 0)) & maskOf(bits, i)) !== 0) return false
  }
  return true
}

/** Bits of byte `i` that belong to a prefix of `bits`. */
function maskOf(bits: number, i: number): number {
  const left = Math.min(8, Math.max(0, bits - i * 8))
  return (255 << (8 - left)) & 255
}

/** Null for what is no address, and for one of a zone: that names an interface of this machine. */
function addressBytes(address: string): readonly number[] | null {
  if (isIPv4(address)) return address.split('.').map(Number)
  if (!isIPv6(address) || address.includes('%')) return null
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
