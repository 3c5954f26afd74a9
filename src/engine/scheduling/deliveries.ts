/**
 * Deliveries of other services for operators: pages of those of one mount, the newest first, and
 * one of them with its content. A page reads a bounded number of rows.
 */
import { idMillis } from '../../value/ids.ts'
import type { ScheduledState } from '../../value/scheduling/scheduled-work.ts'
import type { ReadableCommits } from '../commits/committer.ts'
import {
  hasContent,
  type ScheduledSummary,
  type ScheduledWork,
  summaryOf,
  workOf,
} from '../scheduled-work/scheduled-documents.ts'
import type { WorkReads } from './work-reads.ts'

/** Rows of one read. */
const READ_ROWS = 128
/** Rows that one page reads of those that did not fail, and as many of those that did. */
const PAGE_ROWS_MAX = 2_000
/** UTF-16 units of the texts of the rows of a page: bodies are in them. */
const PAGE_UNITS_MAX = 8 * 1024 * 1024

export interface DeliveryQuery {
  readonly mount: string
  /** Null for all states. */
  readonly state: ScheduledState | null
  /** Null for all routes. */
  readonly route: string | null
  /** The last delivery of the page before; null for the first page. */
  readonly afterId: string | null
  readonly limit: number
}

export interface Delivery extends ScheduledSummary {
  /** True while the headers and the body are stored. */
  readonly hasContent: boolean
}

export interface DeliveryPage {
  readonly items: readonly Delivery[]
  /** ID to continue after; null for the last page. A page with one may have few items, or none. */
  readonly nextId: string | null
}

/** The bounds of one page, which its reads use up. */
interface Budget {
  rows: number
  units: number
}

export class Deliveries {
  readonly #reads: WorkReads
  readonly #committer: ReadableCommits

  constructor(reads: WorkReads, committer: ReadableCommits) {
    this.#reads = reads
    this.#committer = committer
  }

  /** Returns a page, in the order of the IDs from the newest. */
  async list({ mount, state, route, afterId, limit }: DeliveryQuery): Promise<DeliveryPage> {
    const pin = this.#committer.pinSnapshot()
    const snapshot = this.#committer.durable
    const budget: Budget = { rows: PAGE_ROWS_MAX, units: PAGE_UNITS_MAX }
    const kinds = state === null ? [false, true] : [state === 'failed']
    const rows = merged(
      kinds.map((failed) => this.#rows({ mount, failed, afterId }, budget, snapshot)),
    )
    const items: Delivery[] = []
    let lastId = afterId
    try {
      for await (const row of rows) {
        if (row === null || items.length === limit) return { items, nextId: lastId }
        lastId = row.scheduledId
        const isAsked = state === null || row.state === state
        if (isAsked && (route === null || row.http?.route === route)) items.push(deliveryOf(row))
      }
      return { items, nextId: null }
    } finally {
      this.#committer.unpinSnapshot(pin)
    }
  }

  /** Yields the deliveries that did, or did not, fail; null once the budget is used up. */
  async *#rows(
    of: { readonly mount: string; readonly failed: boolean; readonly afterId: string | null },
    budget: Budget,
    snapshot: number,
  ): AsyncGenerator<ScheduledWork | null> {
    const { mount, failed, afterId } = of
    const upper = afterId === null ? undefined : { value: timeOf(afterId), inclusive: true }
    let afterKey: string | undefined
    for (;;) {
      const { documents, done } = await this.#reads.page(
        {
          index: 'byMount',
          equal: [mount, failed ? true : { $u: '' }],
          ...(upper !== undefined && { field: '_createdAt', upper }),
          order: 'desc',
          limit: READ_ROWS,
          textUnitsMax: Math.max(1, budget.units),
          afterKey,
        },
        snapshot,
      )
      for (const { document } of documents) {
        // IDs of the millisecond of the last page may come before it.
        if (afterId !== null && document.id >= afterId) continue
        if (budget.rows <= 0 || budget.units <= 0) return yield null
        budget.rows -= 1
        budget.units -= document.text.length
        yield workOf(document)
      }
      if (done) return
      afterKey = documents.at(-1)!.key
    }
  }
}

/** Merges lists of the newest first. A null of one ends all, since what follows is not known. */
async function* merged(
  lists: readonly AsyncGenerator<ScheduledWork | null>[],
): AsyncGenerator<ScheduledWork | null> {
  const heads = await Promise.all(lists.map((list) => list.next()))
  for (;;) {
    let newest = -1
    for (const [i, { value, done }] of heads.entries()) {
      if (done) continue
      if (value === null) return yield null
      const other = heads[newest]?.value
      if (other == null || value.scheduledId > other.scheduledId) newest = i
    }
    if (newest === -1) return
    yield heads[newest]!.value as ScheduledWork
    heads[newest] = await lists[newest]!.next()
  }
}

export function deliveryOf(work: ScheduledWork): Delivery {
  return { ...summaryOf(work), hasContent: hasContent(work) }
}

/** The creation time of the document with this ID, as a bound. */
function timeOf(id: string): unknown {
  return { $t: String(BigInt(idMillis(id)) * 1_000n) }
}
