/** Measures how promotions affect the latency of concurrent calls at a fixed rate. */
import { type Figure, measuredBy } from '../figure.ts'
import { promoteUnderLoad } from '../promotions/measure.ts'
import type { Report } from '../promotions/plan.ts'

const LOAD = { perSecond: 2_000, promotions: 100, everyMillis: 100 }
const RELEASES = 4

export const PROMOTIONS: readonly Figure[] = [
  {
    name: 'p99 at 2,000/s, 100 promotions in a row',
    baseline: 'without promotions',
    // Latencies may triple.
    ratioMin: 1 / 3,
    documents: 'sqlite',
    measure: async (installation, { seconds, rounds }) => {
      const releases = [installation.releaseId]
      while (releases.length < RELEASES) releases.push(installation.release(releases.length))
      const { application, management, base } = installation
      const plan = { ...LOAD, quietSeconds: seconds, application, management, base, releases }
      const reports: Report[] = []
      while (reports.length < rounds) reports.push(await promoteUnderLoad(plan))
      const candidate = reports.map(({ promoted }) => promoted)
      const baselines = reports.map(({ quiet }) => quiet)
      return measuredBy(
        { candidate, baselines },
        (sample, quiet) => quiet.p99Micros / sample.p99Micros,
      )
    },
  },
]
