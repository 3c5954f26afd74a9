/** Faults that all targets raise. */
import { Fault } from '../../errors/fault.ts'

export function absent(name: string): Fault {
  return new Fault('BACKUP_CORRUPT', { detail: `${name} is missing` })
}
