/** The changes that a Release cannot make beside another, as an operator reads them. */

import type { ValueObject } from '../../../value/values.ts'
import { type Gap, type Newer, WAYS_OUT, type WayOut } from './gaps.ts'
import { plainText } from './plain-examples.ts'

export interface Refusal {
  readonly table: string
  /** A field of the table such as `tags[].name`, or an index; empty for the table itself. */
  readonly path: string
  /** The change from the older of the two schemas to the newer one. */
  readonly change: string
  /**
   * Plain JSON of a small document that one Release stores and the other rejects; null if none was
   * found.
   */
  readonly example: string | null
  readonly wayOut: WayOut
}

/** `document` was tried with the checks of both schemas. */
export function refusalOf(
  { table, gap, newer }: { table: string; gap: Gap; newer: Newer },
  document: ValueObject | null,
): Refusal {
  return {
    table,
    path: gap.path.replace(/^\./, ''),
    change: gap.change.text[newer],
    example: document === null ? null : plainText(document),
    wayOut: gap.change.wayOut[newer],
  }
}

/** Returns `users.nick: CHANGE; for example {"name":"a"}; WAY OUT`. */
export function refusalText({ table, path, change, example, wayOut }: Refusal): string {
  const location = path === '' ? table : `${table}.${path}`
  const shown = example === null ? '' : `; for example ${example}`
  return `${location}: ${change}${shown}; ${WAYS_OUT[wayOut]}`
}
