/** The failures of an upgrade. In each of them the detail says whether anything was replaced. */
import type { TableCode } from '../../errors/codes.ts'
import { Fault } from '../../errors/fault.ts'
import { explanation } from '../explanations.ts'

const UNCHANGED = 'Nothing was replaced.'

/** Returns the failure of files that are not what the owner of the key has signed. */
export function untrusted(detail: string, cause?: unknown): Fault {
  return new Fault('CLIENT_UPGRADE_UNTRUSTED', { detail: `${detail} ${UNCHANGED}`, cause })
}

/** Returns the failure of a release that could not be read as a whole. */
export function undelivered(detail: string, cause?: unknown): Fault {
  return new Fault('CLIENT_UPGRADE_UNDELIVERED', { detail: `${detail} ${UNCHANGED}`, cause })
}

/** Returns a rejection before the first change, with its own next step. */
export function rejected(code: TableCode, detail: string, next?: string): Fault {
  const cause = next === undefined ? undefined : explanation({ next })
  return new Fault(code, { detail: `${detail} ${UNCHANGED}`, cause })
}
