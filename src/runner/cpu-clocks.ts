/** Time of the CPU that this thread used: a busy machine must not count against a Function. */
import { libc } from './libc.ts'

const CLOCK_THREAD_CPUTIME_ID = 3

/** Microseconds. Off Linux it is the time that passed. */
export function makeCpuClock(): () => number {
  if (process.platform !== 'linux') return () => performance.now() * 1000
  const { clock_gettime } = libc()
  // struct timespec: seconds and nanoseconds.
  const time = new BigInt64Array(2)
  const words = new Uint32Array(time.buffer)
  return () => {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, time)
    return words[0]! * 1_000_000 + words[2]! / 1000
  }
}
