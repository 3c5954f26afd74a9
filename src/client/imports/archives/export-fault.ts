/** The fault of an export that cannot be converted. */
import { Fault } from '../../../errors/fault.ts'

/** Returns a CLIENT_EXPORT_INVALID. `detail` is a sentence that names the file and the rule. */
export function exportInvalid(detail: string, cause?: unknown): Fault {
  return new Fault('CLIENT_EXPORT_INVALID', { detail, cause })
}
