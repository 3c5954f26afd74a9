/** Finds ports of 127.0.0.1 for servers that stop and start again at the same address. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Lower bound of the ports that systems use for outgoing connections and for servers that ask for
 * any port (Linux: from 32,768, RFC 6335: from 49,152). Such a port may be in use at the next
 * start.
 */
const PORT_MIN = 10_000
const PORT_MAX = 32_000
const ATTEMPTS = 100

/** Returns a free port, chosen at random, since other processes choose at the same time. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX)
    if (await isFree(port)) return port
  }
  throw new Error('no free port on 127.0.0.1')
}

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      server.close(() => resolve(true))
    })
  })
}
