/** Compares servers with several application processes with one that has one. */
import { type Figure, inTurns } from '../figure.ts'
import { benchInstallation } from '../installation.ts'
import { load } from '../load.ts'
import { fillTable } from '../tables.ts'
import { CONNECTIONS, CREATE, GET, LIST, type Request } from './calls.ts'

const PROCESSES = 2

export const PROCESSES_COMPARED: readonly Figure[] = [
  compared('get', GET, 1.1),
  compared('list', LIST, 1.2),
  compared('create', CREATE, 0.8),
]

/** The load is on the same processors, which a server with several processes has less of. */
function compared(name: string, request: Request, ratioMin: number): Figure {
  return {
    name: `${name}, ${PROCESSES} application processes`,
    baseline: 'one application process',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const environment = { SERVICE_APPLICATION_PROCESSES: String(PROCESSES) }
      const several = await benchInstallation('sqlite', { environment })
      const run = ({ application }: typeof several, seconds: number) =>
        load({ ...application, ...request, connections: CONNECTIONS, seconds })
      try {
        for (const each of [installation, several]) await fillTable(each, 'items')
        return await inTurns(
          {
            candidate: (seconds) => run(several, seconds),
            baseline: (seconds) => run(installation, seconds),
          },
          options,
        )
      } finally {
        await several.dispose()
      }
    },
  }
}
