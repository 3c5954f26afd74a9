/** Compares Queries on a server that exports traces with the same Queries on one that does not. */
import { baselineServer } from '../baselines/processes.ts'
import { type Figure, inTurns } from '../figure.ts'
import { type BenchInstallation, benchInstallation } from '../installation.ts'
import { load } from '../load.ts'
import { fillTable, readItem } from '../tables.ts'
import { CONNECTIONS } from './calls.ts'

export const TRACES: readonly Figure[] = [
  exported('Query, 5% of the traces exported', 0.05, 0.9),
  exported('Query, every trace exported', 1, 0.5),
]

function exported(name: string, share: number, ratioMin: number): Figure {
  return {
    name,
    baseline: 'the same Query, without traces',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const receiver = await baselineServer('otlpReceiver', {})
      const traced = await benchInstallation('sqlite', {
        environment: {
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${receiver.port}`,
          OTEL_TRACES_SAMPLER_ARG: String(share),
        },
      })
      const run = ({ application }: BenchInstallation, seconds: number) => {
        const query = { path: '/v1/query', body: readItem, connections: CONNECTIONS }
        return load({ ...application, ...query, seconds })
      }
      try {
        await fillTable(installation, 'items')
        await fillTable(traced, 'items')
        const measured = await inTurns(
          {
            candidate: (seconds) => run(traced, seconds),
            baseline: (seconds) => run(installation, seconds),
          },
          options,
        )
        const { spansExported, spansDropped } = (await traced.svc(['metrics', '--remote'])).counters
        const isWhole = spansDropped === '0' && Number(spansExported) > 0
        const failure = isWhole ? null : `${spansExported} exported, ${spansDropped} dropped`
        return { ...measured, failure: measured.failure ?? failure }
      } finally {
        await traced.dispose()
        receiver.stop()
      }
    },
  }
}
