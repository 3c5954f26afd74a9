/**
 * The baseline of the transfer workload in SQLite: a hand-written server on the same runtime. Each
 * request is a transaction that reads both accounts, checks the funds, writes both and is durable
 * before its response. Prints its port.
 */
import { Database } from 'bun:sqlite'

interface Transfer {
  readonly from: number
  readonly to: number
  readonly amount: number
}

const database = new Database(process.env.DATABASE_FILE!)
for (const pragma of ['journal_mode = wal', 'synchronous = full', 'fullfsync = on']) {
  database.run(`pragma ${pragma}`)
}
const select = database.prepare<{ balance: number }, [number]>(
  'select balance from accounts where id = ?',
)
const update = database.prepare<null, [number, number]>(
  'update accounts set balance = ? where id = ?',
)

const transfer = database.transaction(({ from, to, amount }: Transfer): boolean => {
  const [source, target] = [select.get(from)!, select.get(to)!]
  if (source.balance < amount) return false
  update.run(source.balance - amount, from)
  update.run(target.balance + amount, to)
  return true
})

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/transfer': {
      POST: async (request) => {
        const done = transfer.immediate((await request.json()) as Transfer)
        return Response.json({ ok: done }, { status: done ? 200 : 409 })
      },
    },
  },
})
process.stdout.write(`${server.port}\n`)
