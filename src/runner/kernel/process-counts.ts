/** The kernel's counts of a whole process, all of its threads included. */
import { closeSync, fstatSync, openSync } from 'node:fs'
import { libc } from './libc.ts'

/** Links of a directory without subdirectories; each further one is a thread. */
const LINKS_OF_FOLDER = 2
/** CPUCLOCK_SCHED, as the low bits of a clock that belongs to a process. */
const CPU_CLOCK_OF_PROCESS = 2

/**
 * Counts that cost a microsecond each, since those of all runners are read ten times a second. They
 * come from files that a process cannot write into: `stat` has its name, which it may choose.
 */
export class ProcessCounts {
  readonly #clock: number
  #tasks: number | null
  /** struct timespec: seconds and nanoseconds. */
  readonly #time = new BigInt64Array(2)

  private constructor(pid: number, tasks: number) {
    this.#clock = (~pid << 3) | CPU_CLOCK_OF_PROCESS
    this.#tasks = tasks
  }

  /** Null where the system has no such counts, or the process has ended. */
  static open(pid: number): ProcessCounts | null {
    try {
      return new ProcessCounts(pid, openSync(`/proc/${pid}/task`, 'r'))
    } catch {
      return null
    }
  }

  /** Microseconds of CPU that all threads have used; null when the process has ended. */
  cpuMicros(): number | null {
    if (this.#tasks === null || libc().clock_gettime(this.#clock, this.#time) !== 0) return null
    return Number(this.#time[0]) * 1_000_000 + Number(this.#time[1]) / 1000
  }

  /** Returns the number of threads; 0 when the process has ended. */
  threads(): number {
    return this.#tasks === null ? 0 : fstatSync(this.#tasks).nlink - LINKS_OF_FOLDER
  }

  close(): void {
    if (this.#tasks !== null) closeSync(this.#tasks)
    this.#tasks = null
  }
}
