/** Time of the CPU that this thread used: a busy machine must not count against a Function. */
import { libc } from './libc.ts'

const CLOCK_THREAD_CPUTIME_ID = 3
/**
 * The kernel's clock of a thread is a system call, 2 us and more behind a filter, which every frame
 * would pay several times; the time that passed is read without one.
 */
const KERNEL_EVERY_MICROS = 1_000

/**
 * Microseconds, only to be subtracted from one another. Steps within a millisecond count as the
 * time that passed, which is never less than what was used; longer ones as the kernel says.
 */
export function makeCpuClock(
  passed: () => number = () => performance.now() * 1000,
  kernel: (() => number) | null = kernelClock(),
): () => number {
  if (kernel === null) return passed
  let at = passed()
  let used = 0
  let askedAt = at
  let answer = kernel()
  return () => {
    const now = passed()
    const step = now - at
    at = now
    if (now - askedAt < KERNEL_EVERY_MICROS) {
      used += step
      return used
    }
    askedAt = now
    const before = answer
    answer = kernel()
    used += Math.min(step, answer - before)
    return used
  }
}

/** Microseconds of this thread; null off Linux, where the time that passed has to do. */
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
