/**
 * The baseline of calls that read the identity database: a bare Hono route on the same runtime that
 * makes one SELECT by primary key, prepared as the server's own are, with a pool of the same size.
 * Prints its port.
 */
import { Hono } from 'hono'
import { Pool } from 'pg'
import { CONNECTIONS_MAX } from '../../src/database/database.ts'

const ROWS = 1_000
const SELECT = { name: 'select', text: 'select id, body from bench_rows where id = $1' }

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS_MAX })
const bodyLength = Math.max(0, Number(process.env.RESPONSE_BYTES ?? '300') - 20)
await pool.query(
  'create table if not exists bench_rows (id bigint primary key, body text not null)',
)
await pool.query(
  `insert into bench_rows select id, repeat('x', $1) from generate_series(1, $2) as id
   on conflict do nothing`,
  [bodyLength, ROWS],
)
await pool.query('analyze bench_rows')

let counter = 0
const app = new Hono()
app.get('/bare', async (context) => {
  counter = (counter % ROWS) + 1
  const { rows } = await pool.query<{ id: string; body: string }>({ ...SELECT, values: [counter] })
  return context.json(rows[0]!)
})
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: app.fetch })
process.stdout.write(`${server.port}\n`)
