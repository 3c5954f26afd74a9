/** CPU time of this thread: a busy machine must not count against a Function. */
import { libc } from './libc.ts'

const CLOCK_THREAD_CPUTIME_ID = 3
/**
 * The kernel's clock of a thread is a system call, which takes 2 us and more behind a filter and
 * which every frame would need several times; elapsed time is read without one.
 */
const KERNEL_EVERY_MICROS = 1_000

/**
 * Returns a clock of CPU microseconds; only differences of its readings mean anything. Within a
 * millisecond it counts elapsed time, which is never less than the CPU time that was used; over a
 * longer step it counts the CPU time that the kernel reports.
 */
export function makeCpuClock(
  elapsed: () => number = () => performance.now() * 1000,
  kernel: (() => number) | null = kernelClock(),
): () => number {
  if (kernel === null) return elapsed
  let readAt = elapsed()
  let used = 0
  let kernelReadAt = readAt
  let kernelMicros = kernel()
  return () => {
    const now = elapsed()
    const step = now - readAt
    readAt = now
    if (now - kernelReadAt < KERNEL_EVERY_MICROS) {
      used += step
      return used
    }
    kernelReadAt = now
    const before = kernelMicros
    kernelMicros = kernel()
    used += Math.min(step, kernelMicros - before)
    return used
  }
}

/** Returns the kernel's clock of this thread; null off Linux, where elapsed time is used. */
function kernelClock(): (() => number) | null {
  if (process.platform !== 'linux') return null
  const { clock_gettime } = libc()
  // struct timespec: seconds and nanoseconds.
  const time = new BigInt64Array(2)
  const words = new Uint32Array(time.buffer)
  return () => {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, time)
    return words[0]! * 1_000_000 + words[2]! / 1000
  }
}
