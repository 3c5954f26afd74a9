/**
 * The two-row transfer workload of public keynote suites: 100,000 accounts and 50 connections. The
 * accounts follow Zipf's law with exponent 0 (no contention) or 1.5 (about 80% of the transfers
 * contend).
 */
import { Client } from 'pg'
import { baselineServer } from '../baselines/processes.ts'
import { call, id, int64, mutateAll, mutationBody, NULL, queryBody, string } from '../calls.ts'
import { type Figure, inTurns } from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { load } from '../load.ts'

const ACCOUNTS = 100_000
const CONNECTIONS = 50
/** Balance of each account at the start: more than an account can lose in a run. */
const BALANCE = 1_000_000_000
const TOTAL = ACCOUNTS * BALANCE
/** Number of accounts that one Mutation opens. */
const OPENED = 1_000

export const TRANSFERS: readonly Figure[] = [
  transfers('no contention', 0),
  transfers('80% contention', 1.5),
]

function transfers(contention: string, exponent: number): Figure {
  return {
    name: `transfers on PostgreSQL, ${contention}`,
    baseline: 'hand-written server, SERIALIZABLE',
    ratioMin: 2,
    documents: 'postgres',
    measure: async (installation, options) => {
      const to = installation.application
      const accounts = await openAccounts(installation)
      const url = await newRows(installation)
      const server = await baselineServer('transfers', { DATABASE_URL: url })
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
        const lost = (await totalOf(to)) !== TOTAL || (await totalOfRows(url)) !== TOTAL
        return lost ? { ...measured, failure: 'the balances do not add up' } : measured
      } finally {
        server.stop()
      }
    },
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
