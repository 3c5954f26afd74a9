/**
 * Reads of scheduled work for the scheduler itself. They bypass transactions: nothing commits
 * against them, and their bounds are those of pages, not of calls.
 */
import { encodeTrailer } from '../../documents/key-encoding.ts'
import type { DocumentStore, KeyedDocument } from '../../documents/store.ts'
import { idMillis } from '../../value/ids.ts'
import { SCHEDULED_DOCUMENTS } from '../../value/scheduling/scheduled-work.ts'
import { type ScheduledSummary, summaryOf, workOf } from '../scheduled-work/scheduled-documents.ts'
import type { SystemTablesLoader } from '../tables/system-tables.ts'
import { intervalOf, namedIndex, type RangeInput } from '../transactions/ranges.ts'

/** UTF-16 units of the texts of one page, which has one document at least. */
const PAGE_UNITS_MAX = 8 * 1024 * 1024

export interface WorkPage {
  readonly documents: readonly KeyedDocument[]
  /** True if nothing of the range follows the page. */
  readonly done: boolean
}

export type WorkRange = Omit<RangeInput, 'table' | 'order'> & {
  /** Ascending where absent. */
  readonly order?: RangeInput['order']
}

export class WorkReads {
  readonly #store: DocumentStore
  readonly #tables: SystemTablesLoader

  constructor(store: DocumentStore, tables: SystemTablesLoader) {
    this.#store = store
    this.#tables = tables
  }

  /** Reads a page. The caller pins the snapshot. */
  async page(range: WorkRange, snapshot: number): Promise<WorkPage> {
    const { all } = await this.#tables.load()
    const table = all.get(SCHEDULED_DOCUMENTS)!
    const physical = namedIndex(table, range.index)
    const { order = 'asc' } = range
    const input = { ...range, table: SCHEDULED_DOCUMENTS, order }
    const { lower, upper } = intervalOf(table, physical, input)
    const { documents, exhausted } = await this.#store.range({
      index: physical.id,
      lower,
      upper,
      order,
      limit: range.limit,
      textUnitsMax: range.textUnitsMax ?? PAGE_UNITS_MAX,
      snapshot,
    })
    return { documents, done: exhausted }
  }

  /** Reads work in the order of the IDs, which is that of the creation. */
  async after(
    afterId: string | null,
    limit: number,
    snapshot: number,
  ): Promise<readonly ScheduledSummary[]> {
    const found: ScheduledSummary[] = []
    let afterKey = afterId === null ? undefined : keyOfId(afterId)
    while (found.length < limit) {
      const range = { index: null, equal: [], limit: limit - found.length, afterKey }
      const { documents, done } = await this.page(range, snapshot)
      found.push(...documents.map(({ document }) => summaryOf(workOf(document))))
      if (done) break
      afterKey = documents.at(-1)!.key
    }
    return found
  }
}

/** The key in the order of the creation: the time of an ID is that of its document. */
function keyOfId(id: string): string {
  return encodeTrailer({ createdAtMicros: BigInt(idMillis(id)) * 1000n, id })
}

/** Returns the range of work in a state, in the order of the due times, up to a time. */
export function byDueTime(
  state: string,
  limit: number,
  bounds: { readonly untilMicros?: bigint; readonly afterMicros?: bigint } = {},
): WorkRange {
  const { untilMicros, afterMicros } = bounds
  const bound = (micros: bigint, inclusive: boolean) => ({
    value: { $t: String(micros) },
    inclusive,
  })
  return {
    index: 'byDue',
    equal: [state],
    field: 'dueAt',
    limit,
    ...(untilMicros !== undefined && { upper: bound(untilMicros, true) }),
    ...(afterMicros !== undefined && { lower: bound(afterMicros, false) }),
  }
}

/** Returns the range of the history, the oldest first, before a time. */
export function byFinish(limit: number, beforeMicros?: bigint): WorkRange {
  return {
    index: 'byFinish',
    equal: [],
    field: 'finishedAt',
    limit,
    lower: { value: { $t: '0' }, inclusive: true },
    ...(beforeMicros !== undefined && {
      upper: { value: { $t: String(beforeMicros) }, inclusive: false },
    }),
  }
}
