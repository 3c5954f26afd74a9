/** Keeps the first thread of another process on the processor of the calling thread. */
import { readdirSync } from 'node:fs'
import { libc } from './libc.ts'

/** A mask of 1,024 processors, which is the one of the C library. */
const MASK_BYTES = 128

/**
 * Two processes that send each other messages in turn wake each other: on one processor that costs
 * 16 us a round trip, and 64 us where each wakes another processor. Linux only.
 */
export class SharedProcessor {
  readonly #pid: number
  /** The processors that the process may use; null before it was kept on one. */
  #allowed: Uint8Array | null = null
  /** The processor that it is kept on; null for any. */
  #kept: number | null = null
  /** True if the kernel does not let this process place the thread. */
  #isRefused = process.platform !== 'linux'
  /** Number of threads when all others were last allowed every processor. */
  #threads = 0

  constructor(pid: number) {
    this.#pid = pid
  }

  /**
   * Keeps the thread on the processor that the caller uses now, or lets it use all again. `threads`
   * is how many the process has: those that the kept one starts are kept with it until a call
   * notices that their number changed.
   */
  share(shares: boolean, threads: number): void {
    if (this.#isRefused || (!shares && this.#kept === null)) return
    const processor = shares ? libc().sched_getcpu() : null
    this.#allowed ??= readAllowed(this.#pid)
    if (processor !== this.#kept) {
      this.#kept = processor
      this.#isRefused = !place(this.#pid, processor === null ? this.#allowed : maskOf(processor))
    }
    if (threads !== this.#threads) this.#freeOthers(this.#allowed)
    this.#threads = threads
  }

  #freeOthers(allowed: Uint8Array): void {
    try {
      for (const thread of readdirSync(`/proc/${this.#pid}/task`)) {
        if (Number(thread) !== this.#pid) place(Number(thread), allowed)
      }
    } catch {
      // The process has ended.
    }
  }
}

function readAllowed(thread: number): Uint8Array {
  const mask = new Uint8Array(MASK_BYTES)
  libc().sched_getaffinity(thread, MASK_BYTES, mask)
  return mask
}

function place(thread: number, mask: Uint8Array): boolean {
  return libc().sched_setaffinity(thread, MASK_BYTES, mask) === 0
}

function maskOf(processor: number): Uint8Array {
  const mask = new Uint8Array(MASK_BYTES)
  mask[processor >> 3] = 1 << (processor & 7)
  return mask
}
