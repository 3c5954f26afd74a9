/** Compares compressed responses with the same ones as they are. */
import { int64, queryBody } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { Target } from '../installation.ts'
import { load } from '../load.ts'
import { fillTable, LISTED, listOf } from '../tables.ts'
import { CONNECTIONS } from './calls.ts'

/** Number of lists that the cache of Queries has. */
const CACHED = 100
let counter = 0
const cachedList = (): string => {
  return queryBody('items.list', { from: int64(counter++ % CACHED), nonce: int64(0) })
}

export const COMPRESSION: readonly Figure[] = [
  compared('gzip', `list of ${LISTED}`, 0.7, listOf('items')),
  compared('zstd', `list of ${LISTED}`, 0.7, listOf('items')),
  compared('gzip', `cached list of ${LISTED}`, 0.95, cachedList),
  compared('zstd', `cached list of ${LISTED}`, 0.95, cachedList),
  shortened('gzip', 5),
  shortened('zstd', 5),
]

const accepting = ({ port, headers }: Target, coding: string): Target => {
  return { port, headers: { ...headers, 'accept-encoding': coding } }
}

function compared(coding: string, list: string, ratioMin: number, body: () => string): Figure {
  return {
    name: `Query, ${list}, ${coding}`,
    baseline: 'the same Query, not compressed',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillTable(installation, 'items')
      const run = (coding: string, seconds: number) => {
        const to = accepting(installation.application, coding)
        return load({ ...to, path: '/v1/query', body, connections: CONNECTIONS, seconds })
      }
      return inTurns(
        {
          candidate: (seconds) => run(coding, seconds),
          baseline: (seconds) => run('identity', seconds),
        },
        options,
      )
    },
  }
}

/** The bytes of one response. */
function shortened(coding: string, ratioMin: number): Figure {
  return {
    name: `bytes of a list of ${LISTED}, ${coding}`,
    baseline: 'bytes without compression',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation) => {
      await fillTable(installation, 'items')
      const [short, long] = await Promise.all(
        [coding, 'identity'].map((each) => bodyBytes(accepting(installation.application, each))),
      )
      const none = { p50Micros: null, p99Micros: null }
      return {
        ratio: long! / short!,
        candidate: { value: `${short} bytes`, ...none },
        baseline: { value: `${long} bytes`, ...none },
        failure: null,
      }
    },
  }
}

async function bodyBytes({ port, headers }: Target): Promise<number> {
  const request: BunFetchRequestInit = {
    method: 'POST',
    headers,
    body: cachedList(),
    decompress: false,
  }
  const response = await fetch(`http://127.0.0.1:${port}/v1/query`, request)
  if (!response.ok) throw new Error(await response.text())
  return (await response.bytes()).length
}
