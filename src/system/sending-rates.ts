/**
 * Bounds the rate at which the system sends on a connection. The runtime sends a file with
 * `sendfile`, for as long as the peer takes it, and has no hook between two pieces. The bound of
 * the socket fills its buffer, so that each piece ends after less than a millisecond.
 */
import { FFIType, ptr } from 'bun:ffi'
import ipaddr from 'ipaddr.js'
import { openLibc } from './connections/libc.ts'

/** The remote end of a connection. */
export interface RemoteEnd {
  readonly address: string
  readonly port: number
}

/** The socket level and the option, which are the same on x64 and arm64. */
const SOL_SOCKET = 1
const SO_MAX_PACING_RATE = 47
const UNBOUNDED = 0xffff_ffff_ffff_ffffn
/** Room for a socket address of IPv4 or IPv6. */
const ADDRESS_BYTES = 28
/** Bytes of a socket address of IPv6 (family, port, flow, address); the address has 16 bytes. */
const IPV6 = { family: 10, start: 8, end: 24 }
const IPV4 = { family: 2, start: 4, end: 8 }
/** Descriptors that follow one another without being a socket, after which the search ends. */
const GAP = 1_024

const { i32, ptr: pointer, u32 } = FFIType
const SYMBOLS = {
  getpeername: { args: [i32, pointer, pointer], returns: i32 },
  setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
} as const

type Sockets = NonNullable<ReturnType<typeof openLibc<typeof SYMBOLS>>>

export class SendingRates {
  readonly #sockets: Sockets
  readonly #address = new Uint8Array(ADDRESS_BYTES)
  readonly #length = new Uint32Array(1)
  readonly #rate = new BigUint64Array(1)

  private constructor(sockets: Sockets) {
    this.#sockets = sockets
  }

  /** Opens the socket calls of the system; null on one that has no such bound. */
  static open(): SendingRates | null {
    const sockets = openLibc(SYMBOLS)
    return sockets === null ? null : new SendingRates(sockets)
  }

  /**
   * Returns the descriptor of the connection with this remote end; null for none. It takes 0.2 us
   * for each descriptor of the process.
   */
  find(end: RemoteEnd): number | null {
    for (let descriptor = 3, gap = 0; gap < GAP; descriptor++) {
      const isSocket = this.#read(descriptor)
      if (isSocket && this.#isOf(end)) return descriptor
      gap = isSocket ? 0 : gap + 1
    }
    return null
  }

  /**
   * Bounds the bytes a second of the connection; null for no bound. Does nothing if the descriptor
   * belongs to another connection by now.
   */
  limit(descriptor: number, end: RemoteEnd, bytesPerSecond: number | null): void {
    if (!this.#read(descriptor) || !this.#isOf(end)) return
    this.#rate[0] = bytesPerSecond === null ? UNBOUNDED : BigInt(Math.ceil(bytesPerSecond))
    const { setsockopt } = this.#sockets
    setsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, ptr(this.#rate), 8)
  }

  /** Reads the remote end of a socket; returns false for any other descriptor. */
  #read(descriptor: number): boolean {
    this.#length[0] = ADDRESS_BYTES
    const { getpeername } = this.#sockets
    return getpeername(descriptor, ptr(this.#address), ptr(this.#length)) === 0
  }

  /** Returns whether the remote end that was read is this one. */
  #isOf({ address, port }: RemoteEnd): boolean {
    const found = this.#address
    if (found[2]! * 256 + found[3]! !== port) return false
    const { start, end } = found[0] === IPV6.family ? IPV6 : IPV4
    if (found[0] !== IPV6.family && found[0] !== IPV4.family) return false
    const bytes = ipaddr.fromByteArray([...found.subarray(start, end)])
    // An address of IPv4 may be mapped to one of IPv6, in either of them.
    return ipaddr.process(bytes.toString()).toString() === ipaddr.process(address).toString()
  }
}
