/**
 * Bounds the memory that is held for peers, such as that of the transfers of one direction. A
 * single peer or credential gets only a share, so that it cannot exhaust the budget for others.
 */
import { TransientMap } from '../../value/memory/transient-map.ts'

/** Fractions of the budget that one peer and one credential may hold. */
const PEER_SHARE = 1 / 4
const CREDENTIAL_SHARE = 1 / 2

/** The sender of a request or the client of a connection, to whom its memory is charged. */
export interface Holder {
  /** Null before authentication, and on public routes. */
  readonly credential: string | null
  readonly peer: string
}

/** A budget as one holder uses it. */
export interface MemoryShare {
  readonly holder: Holder
  /** Returns null if the budget or a share of the holder is exhausted. */
  reserve(bytes: number): Reservation | null
}

export class MemoryBudget {
  readonly #bytesMax: number
  readonly #peers: Shares
  readonly #credentials: Shares
  #used = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
    this.#peers = new Shares(bytesMax * PEER_SHARE)
    this.#credentials = new Shares(bytesMax * CREDENTIAL_SHARE)
  }

  /** Reserved bytes. */
  get used(): number {
    return this.#used
  }

  /** Returns whether the whole budget has room, regardless of the shares of the holders. */
  hasRoom(bytes: number): boolean {
    return this.#used + bytes <= this.#bytesMax
  }

  /** Returns whether `reserve` would succeed. */
  fits(bytes: number, { credential, peer }: Holder): boolean {
    return (
      this.hasRoom(bytes) &&
      this.#peers.fits(peer, bytes) &&
      (credential === null || this.#credentials.fits(credential, bytes))
    )
  }

  /** Returns null if the budget or a share of the holder is exhausted. */
  reserve(bytes: number, holder: Holder): Reservation | null {
    if (!this.fits(bytes, holder)) return null
    this.#add(bytes, holder)
    return new Reservation(() => this.#add(-bytes, holder))
  }

  shareOf(holder: Holder): MemoryShare {
    return { holder, reserve: (bytes) => this.reserve(bytes, holder) }
  }

  #add(bytes: number, { credential, peer }: Holder): void {
    this.#used += bytes
    this.#peers.add(peer, bytes)
    if (credential !== null) this.#credentials.add(credential, bytes)
  }
}

/** Memory of a budget that is held until it is released. */
export class Reservation {
  #free: (() => void) | null
  #buffer: Uint8Array<ArrayBuffer> | null = null

  constructor(free: () => void) {
    this.#free = free
  }

  /** Returns a buffer that lasts until the release. */
  allocate(bytes: number): Uint8Array {
    this.#buffer = new Uint8Array(bytes)
    return this.#buffer
  }

  /** Returns the memory to the budget. A second call does nothing. */
  release(): void {
    if (this.#buffer !== null) discard(this.#buffer)
    this.#buffer = null
    this.#free?.()
    this.#free = null
  }
}

/** Frees the memory of the bytes now, since the budget no longer counts it. */
export function discard({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

class Shares {
  readonly #bytesMax: number
  readonly #held = new TransientMap<string, number>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  fits(key: string, bytes: number): boolean {
    return (this.#held.get(key) ?? 0) + bytes <= this.#bytesMax
  }

  add(key: string, bytes: number): void {
    const held = (this.#held.get(key) ?? 0) + bytes
    if (held === 0) this.#held.delete(key)
    else this.#held.set(key, held)
  }
}
