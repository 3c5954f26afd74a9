/** Measures whether the server's memory grows over a million calls. */
import { type Figure, type Measured, median, type Side } from '../figure.ts'
import type { Target } from '../installation.ts'
import { load } from '../load.ts'
import { serverProcesses } from '../server-processes.ts'
import { addItem, fillTable, readItem } from '../tables.ts'
import { CONNECTIONS as CALLERS, CREATE, GET, LIST } from './calls.ts'

const CALLS = 1_000_000
/** Long enough to fill every bounded cache. */
const WARM_UP_SECONDS = 90
const PART_SECONDS = 5
const CONNECTIONS = 32
/**
 * Share of the samples at the beginning, and at the end, that are compared. The time between two
 * full collections of the heap is half a minute, over which memory varies by 10%.
 */
const SHARE = 0.5
const MIB = 1024

export const MEMORY: readonly Figure[] = [
  {
    name: 'memory after gets, lists and creates',
    baseline: 'memory after the start',
    ratioMin: 0.25,
    documents: 'sqlite',
    measure: async (installation, { warmUpSeconds }) => {
      await fillTable(installation, 'items')
      await installation.restart()
      const before = residentKibibytes()
      const common = { connections: CALLERS, seconds: warmUpSeconds }
      for (const request of [GET, LIST, CREATE]) {
        await load({ ...installation.application, ...common, ...request })
      }
      const after = residentKibibytes()
      const ratio = before / after
      return { ratio, candidate: sideOf(after), baseline: sideOf(before), failure: null }
    },
  },
  {
    name: 'memory after 1,000,000 calls',
    baseline: 'memory before these calls',
    ratioMin: 0.9,
    documents: 'sqlite',
    long: true,
    measure: async (installation) => {
      await fillTable(installation, 'items')
      const to = installation.application
      let { failure } = await callFor(to, WARM_UP_SECONDS)
      const samples: number[] = []
      for (let calls = 0; calls < CALLS; ) {
        const part = await callFor(to, PART_SECONDS)
        calls += part.calls
        failure ??= part.failure
        samples.push(residentKibibytes())
      }
      return flatness(samples, failure)
    },
  },
]

/** Loads the server with Queries and Mutations, on half of the connections each. */
async function callFor(to: Target, seconds: number) {
  const common = { ...to, connections: CONNECTIONS, seconds }
  const results = await Promise.all([
    load({ ...common, path: '/v1/query', body: readItem }),
    load({ ...common, path: '/v1/mutation', body: addItem }),
  ])
  const failed = results.find(({ failures }) => failures > 0)
  const perSecond = results.reduce((sum, result) => sum + result.perSecond, 0)
  return { calls: perSecond * seconds, failure: failed?.firstFailure ?? null }
}

function flatness(samples: readonly number[], failure: string | null): Measured {
  const count = Math.max(1, Math.floor(samples.length * SHARE))
  const before = median(samples.slice(0, count))
  const after = median(samples.slice(-count))
  return { ratio: before / after, candidate: sideOf(after), baseline: sideOf(before), failure }
}

function sideOf(kibibytes: number): Side {
  return { value: `${(kibibytes / MIB).toFixed(0)} MiB`, p50Micros: null, p99Micros: null }
}

function residentKibibytes(): number {
  return serverProcesses().reduce((sum, { rssKibibytes }) => sum + rssKibibytes, 0)
}
