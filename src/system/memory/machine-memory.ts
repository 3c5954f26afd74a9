/** The memory of the machine. */
import { totalmem } from 'node:os'

/** Returns the bytes of the control group's limit, or of the machine where there is no limit. */
export function machineMemoryBytes(): number {
  const total = totalmem()
  const limit = process.constrainedMemory()
  return limit > 0 && limit < total ? limit : total
}
