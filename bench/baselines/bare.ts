/**
 * The baseline of calls: a bare Hono route on the same runtime that parses a JSON body and returns
 * one whose size the environment sets. Prints its port.
 */
import { Hono } from 'hono'

const text = 'x'.repeat(Math.max(0, Number(process.env.RESPONSE_BYTES ?? '300') - 20))
const app = new Hono()
app.post('/bare', async (context) => {
  const body = await context.req.json<{ version: number }>()
  return context.json({ version: body.version, x: text })
})
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: app.fetch })
process.stdout.write(`${server.port}\n`)
