/** Keeps a thread of another process on the processor of the calling thread. */
import { libc } from './libc.ts'

/** A mask of 1,024 processors, which is the one of the C library. */
const MASK_BYTES = 128

/**
 * Two processes that send each other messages in turn wake each other: on one processor that costs
 * 16 us a round trip, and 64 us where each wakes another processor. Linux only.
 */
export class SharedProcessor {
  readonly #thread: number
  /** The processors that the thread may use; null before it was kept on one. */
  #allowed: Uint8Array | null = null
  /** The processor that it is kept on; null for any. */
  #kept: number | null = null
  /** True if the kernel does not let this process place the thread. */
  #isRefused = process.platform !== 'linux'

  constructor(thread: number) {
    this.#thread = thread
  }

  /** Keeps the thread on the processor that the caller uses now, or lets it use all again. */
  share(shares: boolean): void {
    if (this.#isRefused || (!shares && this.#kept === null)) return
    const processor = shares ? libc().sched_getcpu() : null
    if (processor === this.#kept) return
    this.#allowed ??= this.#readAllowed()
    this.#kept = processor
    this.#isRefused = !this.#place(processor === null ? this.#allowed : maskOf(processor))
  }

  #readAllowed(): Uint8Array {
    const mask = new Uint8Array(MASK_BYTES)
    libc().sched_getaffinity(this.#thread, MASK_BYTES, mask)
    return mask
  }

  #place(mask: Uint8Array): boolean {
    return libc().sched_setaffinity(this.#thread, MASK_BYTES, mask) === 0
  }
}

function maskOf(processor: number): Uint8Array {
  const mask = new Uint8Array(MASK_BYTES)
  mask[processor >> 3] = 1 << (processor & 7)
  return mask
}
