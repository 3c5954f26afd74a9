/**
 * Compares calls on 100,000 documents, 20,000 of them drawn at random, with bare routes on the same
 * runtime that have bodies of the same size.
 */
import { type BaselineServer, baselineServer } from '../baselines/processes.ts'
import { int64, queryBody } from '../calls.ts'
import { type Figure, inTurns, type Measured, type MeasureOptions } from '../figure.ts'
import type { Target } from '../installation.ts'
import { type LoadOptions, load } from '../load.ts'
import { addItem, draw, fillTable, LISTED, listOf, readItem } from '../tables.ts'

const CACHED = 100
export const CONNECTIONS = 64
/** A plain result is converted from the tagged one. */
const PLAIN_RATIO_MIN = 0.8

let counter = 0
const readCached = (): string => {
  const number = counter++ % CACHED
  return queryBody('items.get', { number: int64(number), nonce: int64(0) })
}

export type Request = Pick<LoadOptions, 'path' | 'body' | 'method'>

/** The calls that most applications consist of. */
export const GET: Request = { path: '/v1/query', body: readItem }
export const LIST: Request = { path: '/v1/query', body: listOf('items') }
export const CREATE: Request = { path: '/v1/mutation', body: addItem }

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
  comparedToBare('Query from cache', 0.7, { path: '/v1/query', body: readCached }),
  comparedToBare('Query, one indexed read', 0.2, GET),
  comparedToBare(`Query, list of ${LISTED} documents`, 0.1, LIST),
  plainBesideTagged('Query from cache in plain JSON', 'items.get', () => ({
    number: counter++ % CACHED,
    nonce: 0,
  })),
  plainBesideTagged(`Query in plain JSON, list of ${LISTED} documents`, 'items.list', () => ({
    from: draw('items', LISTED),
    nonce: counter++,
  })),
  comparedToBare('durable Mutation, 64 in flight', 0.08, CREATE),
]

/** Compares a plain call of a Query with the tagged one. */
function plainBesideTagged(
  name: string,
  query: string,
  given: () => Readonly<Record<string, number>>,
): Figure {
  const tagged = () => {
    const entries = Object.entries(given()).map(([key, value]) => [key, int64(value)])
    return queryBody(query, Object.fromEntries(entries))
  }
  return {
    name,
    baseline: 'the tagged call',
    ratioMin: PLAIN_RATIO_MIN,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillTable(installation, 'items')
      const to = { ...installation.application, connections: CONNECTIONS }
      const headers = { ...to.headers, 'x-service-target': 'channel:production' }
      const plain = { ...to, headers, path: `/v1/functions/${query}` }
      return inTurns(
        {
          candidate: (seconds) => load({ ...plain, body: () => JSON.stringify(given()), seconds }),
          baseline: (seconds) => load({ ...to, path: '/v1/query', body: tagged, seconds }),
        },
        options,
      )
    },
  }
}

function comparedToBare(name: string, ratioMin: number, request: Request): Figure {
  return {
    name,
    baseline: 'bare route, same body sizes',
    ratioMin,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillTable(installation, 'items')
      const to = installation.application
      return compareServers({ to, request, baseline: await bareServer(to, request) }, options)
    },
  }
}

/** Starts a bare server whose responses are as long as that to the request. */
export async function bareServer(to: Target, request: Request): Promise<BaselineServer> {
  return baselineServer('bare', { RESPONSE_BYTES: await responseBytes(to, request) })
}

interface ServerComparison {
  readonly to: Target
  readonly request: Request
  readonly baseline: BaselineServer
  readonly connections?: number
}

export async function compareServers(
  { to, request, baseline, connections = CONNECTIONS }: ServerComparison,
  options: MeasureOptions,
): Promise<Measured> {
  const { headers } = to
  const bare = { ...request, headers, port: baseline.port, path: '/bare' }
  try {
    return await inTurns(
      {
        candidate: (seconds) => load({ ...to, ...request, connections, seconds }),
        baseline: (seconds) => load({ ...bare, connections, seconds }),
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
