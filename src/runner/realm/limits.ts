/** The limits that the Release of this realm was loaded with. */
import type { LoadLimits } from '../protocol/messages.ts'

export let limits: LoadLimits

/** Sets the limits, before any code of the Workspace runs. */
export function setLimits(given: LoadLimits): void {
  limits = given
}
