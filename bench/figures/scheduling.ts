/** Compares scheduled work with calls: 10,000 pieces due at once, and 1,000,000 pending ones. */
import { int64, mutateAll, mutationBody } from '../calls.ts'
import {
  type Figure,
  inTurns,
  type Measured,
  type MeasureOptions,
  measuredBy,
  type Side,
} from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { type LoadResult, load } from '../load.ts'
import { serverCpuMillis } from '../server-processes.ts'
import { fillTable, readItem } from '../tables.ts'
import { CONNECTIONS } from './calls.ts'

const DUE = 10_000
const PENDING = 1_000_000
/** Pieces that one call schedules. */
const PLANNED = 1_000
/** Time in which all of the pieces are scheduled. */
const LEAD_MILLIS = 5_000
const POLL_MILLIS = 50
const QUERY_CONNECTIONS = 8
const DAY_MILLIS = 86_400_000
const MINUTE_MILLIS = 60_000
/** Time in which the server finishes what load leaves behind: checkpoints, collections, logs. */
const SETTLE_MILLIS = 30_000

let next = 1_000_000

export const SCHEDULING: readonly Figure[] = [
  {
    name: `${DUE} scheduled Mutations, due at once`,
    baseline: 'the same Mutation, called, 64 in flight',
    ratioMin: 0.5,
    documents: 'sqlite',
    measure: (installation, options) =>
      inTurns(
        {
          candidate: () => runDue(installation),
          baseline: (seconds) => loadMutations(installation.application, seconds),
        },
        options,
      ),
  },
  {
    name: `p99 of Queries while ${DUE} pieces are due`,
    baseline: 'p99 of Queries on a quiet server',
    ratioMin: 1 / 3,
    documents: 'sqlite',
    measure: measureQueries,
  },
  {
    name: 'Mutations with 1,000,000 pending pieces',
    baseline: 'Mutations without',
    ratioMin: 1 / 1.1,
    documents: 'sqlite',
    long: true,
    measure: async (installation, options) => {
      const { without, beside } = await measurePending(installation, options)
      const rounds = { candidate: beside.mutations, baselines: without.mutations }
      return measuredBy(rounds, (one, other) => one.perSecond / other.perSecond)
    },
  },
  {
    name: 'idle time with 1,000,000 pending pieces',
    baseline: 'idle time without, a minute each',
    ratioMin: 0.99,
    documents: 'sqlite',
    long: true,
    measure: async (installation, options) => {
      const { without, beside } = await measurePending(installation, options)
      const idleMillis = ({ cpuMillis }: Pending) => MINUTE_MILLIS - cpuMillis
      return {
        ratio: idleMillis(beside) / idleMillis(without),
        candidate: cpuSide(beside),
        baseline: cpuSide(without),
        failure: null,
      }
    },
  },
]

export function loadMutations(to: Target, seconds: number): Promise<LoadResult> {
  const body = () => mutationBody('later.now', { number: int64(next++) })
  return load({ ...to, path: '/v1/mutation', body, connections: CONNECTIONS, seconds })
}

async function repeat<T>(count: number, task: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let i = 0; i < count; i++) results.push(await task())
  return results
}

/** Schedules `count` pieces for one time. */
async function plan(to: Target, count: number, atMillis: number): Promise<void> {
  const first = next
  next += count
  const bodies = Array.from({ length: count / PLANNED }, (_, i) => {
    const from = first + i * PLANNED
    const numbers = { from: int64(from), to: int64(from + PLANNED) }
    return mutationBody('later.plan', { ...numbers, at: int64(atMillis * 1_000) })
  })
  await mutateAll(to, bodies, 4)
}

/** Measures how many pieces run in a second once they are due. */
async function runDue(installation: BenchInstallation): Promise<LoadResult> {
  const atMillis = Date.now() + LEAD_MILLIS
  const before = await runsOf(installation)
  await plan(installation.application, DUE, atMillis)
  await sleep(atMillis - Date.now())
  await whenDone(installation, before)
  const seconds = (Date.now() - atMillis) / 1_000
  const figures = { perSecond: DUE / seconds, p50Micros: 0, p99Micros: 0 }
  return { ...figures, failures: 0, firstFailure: null }
}

/** Waits by a metric until all due pieces have run: a Query would compete with them. */
async function whenDone(installation: BenchInstallation, before: number): Promise<void> {
  while ((await runsOf(installation)) < before + DUE) await sleep(POLL_MILLIS)
}

/** Returns the number of scheduled runs that have succeeded since the start of the server. */
export async function runsOf({ management, base }: BenchInstallation): Promise<number> {
  const url = `http://127.0.0.1:${management.port}${base}/metrics`
  const reply = await fetch(url, { headers: management.headers })
  const { counters } = (await reply.json()) as { counters: Record<string, string> }
  return Number(counters.scheduledSucceeded)
}

async function measureQueries(
  installation: BenchInstallation,
  { rounds }: MeasureOptions,
): Promise<Measured> {
  await fillTable(installation, 'items')
  const to = installation.application
  const queries = (seconds: number) =>
    load({ ...to, path: '/v1/query', body: readItem, connections: QUERY_CONNECTIONS, seconds })
  const candidate: LoadResult[] = []
  const baselines: LoadResult[] = []
  for (let round = 0; round < rounds; round++) {
    baselines.push(await queries(2))
    const atMillis = Date.now() + LEAD_MILLIS
    const before = await runsOf(installation)
    await plan(to, DUE, atMillis)
    await sleep(atMillis - Date.now())
    candidate.push(await queries(2))
    await whenDone(installation, before)
  }
  return measuredBy({ candidate, baselines }, (one, other) => other.p99Micros / one.p99Micros)
}

/** The figures of a server, with pending pieces or without. */
interface Pending {
  readonly mutations: readonly LoadResult[]
  /** CPU time of a minute without calls. */
  readonly cpuMillis: number
}

interface PendingComparison {
  readonly without: Pending
  readonly beside: Pending
}

const comparisons = new WeakMap<BenchInstallation, Promise<PendingComparison>>()

/** Measures once for each installation: the pieces stay pending. */
function measurePending(
  installation: BenchInstallation,
  options: MeasureOptions,
): Promise<PendingComparison> {
  const comparison = comparisons.get(installation) ?? comparePending(installation, options)
  comparisons.set(installation, comparison)
  return comparison
}

async function comparePending(
  { application: to }: BenchInstallation,
  { warmUpSeconds, seconds, rounds }: MeasureOptions,
): Promise<PendingComparison> {
  const measure = async (): Promise<Pending> => ({
    mutations: await repeat(rounds, () => loadMutations(to, seconds)),
    cpuMillis: await idleCpuMillis(),
  })
  await loadMutations(to, warmUpSeconds)
  const without = await measure()
  await plan(to, PENDING, Date.now() + DAY_MILLIS)
  return { without, beside: await measure() }
}

/** Returns the CPU time that the server uses in a minute after the load has settled. */
async function idleCpuMillis(): Promise<number> {
  await sleep(SETTLE_MILLIS)
  const before = serverCpuMillis()
  await sleep(MINUTE_MILLIS)
  return serverCpuMillis() - before
}

function cpuSide({ cpuMillis }: Pending): Side {
  return { value: `${cpuMillis} ms`, p50Micros: null, p99Micros: null }
}

function sleep(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, millis)))
}
