/**
 * The two-row transfer workload of public keynote suites: 100,000 accounts and 50 connections. The
 * accounts follow Zipf's law with exponent 0 (no contention) or 1.5 (about 80% of the transfers
 * contend).
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { Client } from 'pg'
import { type BaselineServer, baselineServer } from '../baselines/processes.ts'
import { call, id, int64, mutateAll, mutationBody, NULL, queryBody, string } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { BenchInstallation, Documents, Target } from '../installation.ts'
import { load } from '../load.ts'
import { STORES } from '../tables.ts'

const ACCOUNTS = 100_000
const CONNECTIONS = 50
/** Balance of each account at the start: more than an account can lose in a run. */
const BALANCE = 1_000_000_000
const TOTAL = ACCOUNTS * BALANCE
/** Number of accounts that one Mutation opens. */
const OPENED = 1_000

export const TRANSFERS: readonly Figure[] = [
  transfers('sqlite', { contention: 'no contention', exponent: 0, ratioMin: 2 }),
  transfers('sqlite', { contention: '80% contention', exponent: 1.5, ratioMin: 1.5 }),
  transfers('postgres', { contention: 'no contention', exponent: 0, ratioMin: 2 }),
  transfers('postgres', { contention: '80% contention', exponent: 1.5, ratioMin: 2 }),
]

interface Contention {
  readonly contention: string
  readonly exponent: number
  readonly ratioMin: number
}

function transfers(documents: Documents, { contention, exponent, ratioMin }: Contention): Figure {
  return {
    name: `transfers on ${STORES[documents]}, ${contention}`,
    baseline: 'hand-written server, serializable',
    ratioMin,
    documents,
    measure: async (installation, options) => {
      const to = installation.application
      const accounts = await openAccounts(installation)
      const { server, total } = await HAND_WRITTEN[documents](installation)
      const attempts = await attemptCounter(installation)
      const pair = pairs(exponent)
      const transfer = (): string => {
        const [from, to] = pair()
        const entries = { from: id(accounts[from]!), to: id(accounts[to]!), amount: int64(1) }
        return mutationBody('transfers.transfer', entries)
      }
      const transferByHand = (): string => {
        const [from, to] = pair()
        return JSON.stringify({ from, to, amount: 1 })
      }
      const common = { connections: CONNECTIONS }
      const headers = { 'content-type': 'application/json' }
      const hand = { port: server.port, path: '/transfer', headers, body: transferByHand }
      try {
        const measured = await inTurns(
          {
            candidate: (seconds) =>
              load({ ...common, ...to, path: '/v1/mutation', body: transfer, seconds }),
            baseline: (seconds) => load({ ...common, ...hand, seconds }),
          },
          options,
        )
        const lost = (await totalOf(to)) !== TOTAL || (await total()) !== TOTAL
        const note = `${(await attempts()).toFixed(2)} attempts a transfer`
        return { ...measured, note, ...(lost && { failure: 'the balances do not add up' }) }
      } finally {
        server.stop()
      }
    },
  }
}

/** Returns the function that computes the mean number of attempts of each Mutation since then. */
async function attemptCounter({ svc }: BenchInstallation): Promise<() => Promise<number>> {
  const counters = async () => {
    const { commits, commitConflicts } = (await svc(['metrics', '--remote'])).counters
    return { commits: Number(commits), conflicts: Number(commitConflicts) }
  }
  const before = await counters()
  return async () => {
    const { commits, conflicts } = await counters()
    return 1 + (conflicts - before.conflicts) / (commits - before.commits)
  }
}

const opened = new WeakMap<BenchInstallation, readonly string[]>()

/** Opens the accounts once for each installation and returns their IDs. */
async function openAccounts(installation: BenchInstallation): Promise<readonly string[]> {
  const known = opened.get(installation)
  if (known !== undefined) return known
  const open = () =>
    mutationBody('transfers.open', { count: int64(OPENED), balance: int64(BALANCE) })
  const bodies = Array.from({ length: ACCOUNTS / OPENED }, open)
  const results = await mutateAll(installation.application, bodies, 4)
  const accounts = results.flatMap(({ value }) =>
    value.map((each: { value: string }) => each.value),
  )
  opened.set(installation, accounts)
  return accounts
}

async function totalOf(to: Target): Promise<number> {
  let total = 0
  for (let cursor = NULL; ; ) {
    const result = await call(to, '/v1/query', queryBody('transfers.sum', { cursor }))
    const page = new Map<string, { value?: string }>(
      result.value.map(({ key, value }: { key: string; value: object }) => [key, value]),
    )
    total += Number(page.get('sum')!.value)
    const next = page.get('cursor')!.value
    if (next === undefined) return total
    cursor = string(next)
  }
}

interface HandWritten {
  readonly server: BaselineServer
  /** Returns the sum of all balances. */
  total(): Promise<number>
}

const HAND_WRITTEN: Readonly<
  Record<Documents, (installation: BenchInstallation) => Promise<HandWritten>>
> = {
  sqlite: async ({ directory }) => {
    const file = join(directory, `accounts-${performance.now()}.db`)
    const database = new Database(file, { create: true })
    database.run('create table accounts (id integer primary key, balance integer not null)')
    const insert = database.prepare('insert into accounts values (?, ?)')
    database.transaction(() => {
      for (let id = 0; id < ACCOUNTS; id++) insert.run(id, BALANCE)
    })()
    const sum = database.prepare<{ total: number }, []>(
      'select sum(balance) as total from accounts',
    )
    const server = await baselineServer('transfersSqlite', { DATABASE_FILE: file })
    return { server, total: async () => sum.get()!.total }
  },
  postgres: async (installation) => {
    const url = await newRows(installation)
    const server = await baselineServer('transfers', { DATABASE_URL: url })
    return { server, total: () => totalOfRows(url) }
  },
}

/** Creates a database with the accounts as rows and returns its URL. */
async function newRows(installation: BenchInstallation): Promise<string> {
  const url = await installation.newDatabase()
  await withClient(url, async (client) => {
    await client.query('create table accounts (id integer primary key, balance bigint not null)')
    await client.query(
      'insert into accounts select id, $2 from generate_series(0, $1::integer - 1) as id',
      [ACCOUNTS, BALANCE],
    )
    await client.query('vacuum analyze accounts')
  })
  return url
}

function totalOfRows(url: string): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query('select sum(balance) as total from accounts')
    return Number(rows[0].total)
  })
}

async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Draws two different accounts; account n has the weight n to the power of -exponent. */
function pairs(exponent: number): () => [number, number] {
  const sums = new Float64Array(ACCOUNTS)
  let sum = 0
  for (let i = 0; i < ACCOUNTS; i++) {
    sum += (i + 1) ** -exponent
    sums[i] = sum
  }
  const draw = (): number => {
    const wanted = Math.random() * sum
    let low = 0
    let high = ACCOUNTS - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle]! > wanted) high = middle
      else low = middle + 1
    }
    return low
  }
  return () => {
    const from = draw()
    for (;;) {
      const to = draw()
      if (to !== from) return [from, to]
    }
  }
}
