/** Makes the kernel run the calling thread at once when it is woken. */
import { ptr } from 'bun:ffi'
import { libc } from './libc.ts'

const SCHED_SETATTR = process.arch === 'x64' ? 314 : 274
const SCHED_GETATTR = process.arch === 'x64' ? 315 : 275
const SCHED_OTHER = 0
const RESET_ON_FORK = 1n
/** The shortest slice that Linux accepts. */
const SLICE_NANOS = 100_000n

/** Offsets in `struct sched_attr` of its first version. */
const ATTR = { bytes: 48, policy: 4, flags: 8, runtime: 24 }

/**
 * Asks for short slices of time: a thread with shorter slices than the running one preempts it when
 * it is woken, and has no larger share. Otherwise it would wait for some milliseconds behind a
 * thread that compiles code or returns memory. Threads and processes that it starts later have
 * ordinary slices. Returns false if it left the thread as it is: elsewhere than on Linux, and where
 * the operator has chosen another scheduling policy. Linux before 6.12 ignores the request.
 */
export function preemptWhenWoken(): boolean {
  if (process.platform !== 'linux') return false
  const attr = new DataView(new ArrayBuffer(ATTR.bytes))
  if (libc().syscall(SCHED_GETATTR, 0, ptr(attr), ATTR.bytes, 0, 0) !== 0) return false
  if (attr.getUint32(ATTR.policy, true) !== SCHED_OTHER) return false
  attr.setBigUint64(ATTR.flags, attr.getBigUint64(ATTR.flags, true) | RESET_ON_FORK, true)
  attr.setBigUint64(ATTR.runtime, SLICE_NANOS, true)
  return libc().syscall(SCHED_SETATTR, 0, ptr(attr), 0, 0, 0) === 0
}
