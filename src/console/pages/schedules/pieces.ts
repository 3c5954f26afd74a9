/** Scheduled Functions as the route lists them, in the order of IDs, which begin with a time. */
import { encodeUlid, idMillis } from '../../../value/ids.ts'
import type { ScheduledPage } from '../../../wire/schedules.ts'
import { call } from '../../requests.ts'

export type Work = ScheduledPage['items'][number]

/** Pieces of one request, of which a filter leaves few. */
const READ_MAX = 500
const REQUESTS_MAX = 10
/** Milliseconds between the time of a run and that of its ID. */
const RUN_MS = 2_000
/** An ID of a run by hand has the time of the client. */
const CLIENT_MS = 60_000

/** Returns an ID before those of a time. */
export function idBefore(millis: number): string {
  return `sch_${encodeUlid(Math.max(0, Math.trunc(millis)), new Uint8Array(10))}`
}

export interface Found {
  readonly items: readonly Work[]
  /** The ID after which the next page begins; null at the end. */
  readonly next: string | null
  /** Pieces that were looked at. */
  readonly read: number
}

/** Reads pieces after an ID until `limit` fit, or REQUESTS_MAX times READ_MAX were looked at. */
export async function findWork(
  environmentId: string,
  { after, limit, fits }: { after: string | null; limit: number; fits: (work: Work) => boolean },
  background = false,
): Promise<Found> {
  const items: Work[] = []
  let [next, read] = [after, 0]
  for (let i = 0; i < REQUESTS_MAX; i++) {
    const query = { limit: READ_MAX, ...(next !== null && { after: next }) }
    const page = await call('listScheduled', environmentId, { query }, { background })
    for (const work of page.items) {
      if (items.length === limit) return { items, next, read }
      read++
      next = work.scheduledId
      if (fits(work)) items.push(work)
    }
    if (page.next === null) return { items, next: null, read }
  }
  return { items, next, read }
}

interface Run {
  readonly function: string
  readonly lastRunAtMicros: string | null
}

/**
 * Returns the newest run of a Cron; null if it is not listed, or if runs of several Crons with one
 * Function cannot be told apart.
 */
export async function runOfCron(
  environmentId: string,
  { function: name, lastRunAtMicros }: Run,
  background: boolean,
): Promise<Work | null> {
  const at = Number(BigInt(lastRunAtMicros ?? '0') / 1000n)
  const isRun = (work: Work): boolean => work.source === 'cron' && work.function === name
  const query = { after: idBefore(at - CLIENT_MS), limit: READ_MAX } as never
  const { items } = await call('listScheduled', environmentId, { query }, { background })
  const runs = items.filter(isRun)
  const byHand = runs.filter(({ dueAtMicros }) => dueAtMicros === lastRunAtMicros)
  const byTime = runs.filter(({ scheduledId }) => Math.abs(idMillis(scheduledId) - at) < RUN_MS)
  const found = byHand.length > 0 ? byHand : byTime
  return found.length === 1 ? found[0]! : null
}
