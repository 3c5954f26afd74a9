/** The failure of a setup that changed nothing. */
import { Fault } from '../../errors/fault.ts'

/** `reason` is a sentence with the remedy. */
export function unsupported(reason: string): Fault {
  return new Fault('SERVER_SETUP_UNSUPPORTED', { detail: reason })
}
