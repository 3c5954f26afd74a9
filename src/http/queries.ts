/** Query parameters that several lists share. */
import { Fault } from '../errors/fault.ts'

/** Entries of a page. Throws PLATFORM_REQUEST_INVALID for none, and for more than `most`. */
export function readPageLimit(
  text: string | undefined,
  { most, usual }: { readonly most: number; readonly usual: number },
): number {
  if (text === undefined) return usual
  const limit = /^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: 'query.limit', rule: `1 to ${most}` }],
  })
}
