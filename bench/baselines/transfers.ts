/**
 * The baseline of the transfer workload: a hand-written server on the same runtime. Each request is
 * a SERIALIZABLE transaction that reads both accounts, checks the funds and writes both. It is
 * retried after a growing random pause if PostgreSQL reports a conflict. Prints its port.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseError, Pool, type PoolClient } from 'pg'

/** The default of pg. With 50 connections contended transfers are 2 to 5 times slower. */
const CONNECTIONS = 10
/** Bound of a pause, which doubles from one retry to the next. */
const PAUSE_MILLIS_MAX = 32
const SELECT = 'select id, balance from accounts where id in ($1, $2)'
const UPDATE = 'update accounts set balance = $2 where id = $1'
const RETRIED = ['40001', '40P01']

interface Transfer {
  readonly from: number
  readonly to: number
  readonly amount: number
}

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS })
// Connects before the first request, which would measure the connection otherwise.
const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()))
for (const client of clients) client.release()

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/transfer': {
      POST: async (request) => {
        const transfer = (await request.json()) as Transfer
        const done = await withRetries(transfer)
        return Response.json({ ok: done }, { status: done ? 200 : 409 })
      },
    },
  },
})
process.stdout.write(`${server.port}\n`)

async function withRetries(transfer: Transfer): Promise<boolean> {
  const client = await pool.connect()
  try {
    for (let pauseMillis = 1; ; pauseMillis = Math.min(pauseMillis * 2, PAUSE_MILLIS_MAX)) {
      try {
        return await attempt(client, transfer)
      } catch (error) {
        await client.query('rollback')
        if (!(error instanceof DatabaseError) || !RETRIED.includes(error.code ?? '')) throw error
        await delay(Math.random() * pauseMillis)
      }
    }
  } finally {
    client.release()
  }
}

/** Makes one attempt. Returns false if the funds do not suffice. */
async function attempt(client: PoolClient, { from, to, amount }: Transfer): Promise<boolean> {
  await client.query('begin isolation level serializable')
  const select = { name: 'select', text: SELECT, values: [from, to] }
  const { rows } = await client.query<{ id: number; balance: string }>(select)
  const balanceOf = (id: number) => Number(rows.find((row) => row.id === id)!.balance)
  const left = balanceOf(from) - amount
  if (left < 0) {
    await client.query('rollback')
    return false
  }
  // In one order, since transfers between the same accounts would deadlock otherwise.
  const changes = [
    [from, left],
    [to, balanceOf(to) + amount],
  ].sort(([a], [b]) => a! - b!)
  for (const values of changes) await client.query({ name: 'update', text: UPDATE, values })
  await client.query('commit')
  return true
}
