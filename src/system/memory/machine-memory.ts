/** The memory of the machine, and what processes hold of it. */
import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'

/** Returns the bytes of the control group's limit, or of the machine where there is no limit. */
export function machineMemoryBytes(): number {
  const total = totalmem()
  const limit = process.constrainedMemory()
  return limit > 0 && limit < total ? limit : total
}

/**
 * Returns the resident bytes of a process without the pages of files, which the kernel may take
 * back and which processes of one executable share; 0 where the system does not report them.
 */
export function heldBytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const [, kib] = /^RssAnon:\s+(\d+) kB/m.exec(status)!
    return Number(kib) * 1024
  } catch {
    return 0
  }
}
