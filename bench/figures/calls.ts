/** Compares calls with bare routes on the same runtime that have bodies of the same size. */

import { type BaselineServer, baselineServer } from '../baselines/processes.ts'
import { int64, mutateAll, mutationBody, queryBody, TEXTS } from '../calls.ts'
import { type Figure, inTurns, type Measured, type MeasureOptions } from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { type LoadOptions, load } from '../load.ts'

const ITEMS = 10_000
/** Number of documents of each list. */
const LISTED = 50
const CACHED = 100
export const CONNECTIONS = 64

let counter = 0

export const addItem = (): string =>
  mutationBody('items.add', { number: int64(ITEMS + counter++), ...TEXTS })
export const readItem = (): string => {
  const number = (counter * 7919) % ITEMS
  return queryBody('items.get', { number: int64(number), nonce: int64(counter++) })
}
const listItems = (): string => {
  const from = (counter * 7919) % (ITEMS - LISTED)
  return queryBody('items.list', { from: int64(from), nonce: int64(counter++) })
}
const readCached = (): string => queryBody('items.get', { number: int64(counter++ % CACHED) })

const filled = new WeakSet<BenchInstallation>()

/** Inserts the items 0 to 9,999, once for each installation. */
export async function fillItems(installation: BenchInstallation): Promise<void> {
  if (filled.has(installation)) return
  filled.add(installation)
  const bodies = Array.from({ length: ITEMS }, (_, number) =>
    mutationBody('items.add', { number: int64(number), ...TEXTS }),
  )
  await mutateAll(installation.application, bodies, CONNECTIONS)
}

type Request = Pick<LoadOptions, 'path' | 'body' | 'method'>

export const CALLS: readonly Figure[] = [
  // It runs first, since the access token expires after 10 minutes.
  {
    name: 'authenticated GET /v1/auth/me',
    baseline: 'bare route with one SELECT',
    ratioMin: 0.35,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const to = installation.management
      const request = { method: 'GET', path: '/v1/auth/me' } as const
      const baseline = await baselineServer('bareSelect', {
        RESPONSE_BYTES: await responseBytes(to, request),
        DATABASE_URL: await installation.newDatabase(),
      })
      return compareServers({ to, request, baseline }, options)
    },
  },
  comparedToBare('Query from cache', 0.7, '/v1/query', readCached),
  comparedToBare('Query, one indexed read', 0.2, '/v1/query', readItem),
  comparedToBare(`Query, list of ${LISTED} documents`, 0.1, '/v1/query', listItems),
  comparedToBare('durable Mutation, 64 in flight', 0.08, '/v1/mutation', addItem),
]

function comparedToBare(name: string, ratioMin: number, path: string, body: () => string): Figure {
  return {
    name,
    baseline: 'bare route, same body sizes',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillItems(installation)
      const to = installation.application
      const request = { path, body }
      const bytes = await responseBytes(to, request)
      const baseline = await baselineServer('bare', { RESPONSE_BYTES: bytes })
      return compareServers({ to, request, baseline }, options)
    },
  }
}

interface ServerComparison {
  readonly to: Target
  readonly request: Request
  readonly baseline: BaselineServer
}
async function compareServers(
  { to, request, baseline }: ServerComparison,
  options: MeasureOptions,
): Promise<Measured> {
  const { headers } = to
  const bare = { ...request, headers, port: baseline.port, path: '/bare' }
  try {
    return await inTurns(
      {
        candidate: (seconds) => load({ ...to, ...request, connections: CONNECTIONS, seconds }),
        baseline: (seconds) => load({ ...bare, connections: CONNECTIONS, seconds }),
      },
      options,
    )
  } finally {
    baseline.stop()
  }
}

/** The length of the response to one request, as an environment variable of a baseline. */
async function responseBytes({ port, headers }: Target, request: Request): Promise<string> {
  const { method = 'POST', path, body } = request
  const init = { method, headers, ...(body !== undefined && { body: body() }) }
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, init)
  const text = await reply.text()
  if (!reply.ok) throw new Error(text)
  return String(Buffer.byteLength(text))
}
