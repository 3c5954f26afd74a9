/** Calls beside bare routes on the same runtime, with bodies of the same size. */
import { int64, mutateAll, mutationBody, queryBody, TEXTS } from '../calls.ts'
import { type Figure, inTurns, type Measured, type MeasureOptions } from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { type LimitServer, limitServer } from '../limits/processes.ts'
import { type LoadOptions, load } from '../load.ts'

const ITEMS = 10_000
/** Documents of each list. */
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

/** Items 0 to 9,999, once for each installation. */
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
  // First, since the access token lives 10 minutes.
  {
    name: 'authenticated GET /v1/auth/me',
    beside: 'bare route with one SELECT',
    bar: 0.35,
    documents: 'sqlite',
    measure: async (installation, options) => {
      const to = installation.management
      const request = { method: 'GET', path: '/v1/auth/me' } as const
      const limit = await limitServer('bareSelect', {
        ANSWER_BYTES: await answerBytes(to, request),
        DATABASE_URL: await installation.newDatabase(),
      })
      return besideServer({ to, request, limit }, options)
    },
  },
  besideBare('Query from cache', 0.7, '/v1/query', readCached),
  besideBare('Query, one indexed read', 0.2, '/v1/query', readItem),
  besideBare(`Query, list of ${LISTED} documents`, 0.1, '/v1/query', listItems),
  besideBare('durable Mutation, 64 in flight', 0.08, '/v1/mutation', addItem),
]

function besideBare(name: string, bar: number, path: string, body: () => string): Figure {
  return {
    name,
    beside: 'bare route, same body sizes',
    bar,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillItems(installation)
      const to = installation.application
      const request = { path, body }
      const limit = await limitServer('bare', { ANSWER_BYTES: await answerBytes(to, request) })
      return besideServer({ to, request, limit }, options)
    },
  }
}

interface BesideServer {
  readonly to: Target
  readonly request: Request
  readonly limit: LimitServer
}

async function besideServer(
  { to, request, limit }: BesideServer,
  options: MeasureOptions,
): Promise<Measured> {
  const { headers } = to
  const bare = { ...request, headers, port: limit.port, path: '/bare' }
  try {
    return await inTurns(
      {
        ours: (seconds) => load({ ...to, ...request, connections: CONNECTIONS, seconds }),
        limit: (seconds) => load({ ...bare, connections: CONNECTIONS, seconds }),
      },
      options,
    )
  } finally {
    limit.stop()
  }
}

/** As the environment of a limit has it. */
async function answerBytes({ port, headers }: Target, request: Request): Promise<string> {
  const { method = 'POST', path, body } = request
  const init = { method, headers, ...(body !== undefined && { body: body() }) }
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, init)
  const text = await reply.text()
  if (!reply.ok) throw new Error(text)
  return String(Buffer.byteLength(text))
}
