/** Compares the restart of a server that has many documents with that of one that has none. */
import { call, int64, queryBody } from '../calls.ts'
import { type Figure, type Measured, type MeasureOptions, median, type Side } from '../figure.ts'
import { type BenchInstallation, benchInstallation, type Documents } from '../installation.ts'
import { fillTable, STORES } from '../tables.ts'

/** Pause before each restart, in which the server ends what the calls before it left to do. */
const IDLE_MILLIS = 2_000

export const RESTARTS: readonly Figure[] = (['sqlite', 'postgres'] as const).map((documents) => ({
  name: `restart with 1,000,000 documents, ${STORES[documents]}`,
  baseline: 'restart with an empty store',
  ratioMin: 0.8,
  documents,
  long: true,
  measure: (_, options) => measureRestarts(documents, options),
}))

/** Uses an installation of its own, since that of the other figures is not empty. */
async function measureRestarts(
  documents: Documents,
  { rounds }: MeasureOptions,
): Promise<Measured> {
  const installation = await benchInstallation(documents)
  try {
    const baseline = await restarts(installation, rounds)
    await fillTable(installation, 'many')
    const candidate = await restarts(installation, rounds)
    const ratio = median(baseline) / median(candidate)
    return { ratio, candidate: sideOf(candidate), baseline: sideOf(baseline), failure: null }
  } finally {
    await installation.dispose()
  }
}

/** Returns the milliseconds from SIGTERM until the server is ready. A call follows each restart. */
async function restarts(
  installation: BenchInstallation,
  rounds: number,
): Promise<readonly number[]> {
  const millis: number[] = []
  for (let round = 0; round < rounds; round++) {
    await new Promise((resolve) => setTimeout(resolve, IDLE_MILLIS))
    millis.push(await installation.restart())
    const body = queryBody('many.get', { number: int64(round), nonce: int64(round) })
    await call(installation.application, '/v1/query', body)
  }
  return millis
}

function sideOf(millis: readonly number[]): Side {
  return { value: `${median(millis).toFixed(0)} ms`, p50Micros: null, p99Micros: null }
}
