/** A TCP proxy that cuts its connections when a test wants it, as a changing network does. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface CuttingProxy {
  /** host:port on 127.0.0.1. */
  readonly authority: string
  /** Resets every connection. */
  cut(): void
  /** While it is true, requests arrive and their responses do not. Cut the connections then. */
  losesResponses: boolean
  close(): Promise<void>
}

/** `upstream` is host:port; a connection that it does not accept is reset. */
export async function cuttingProxy(upstream: string): Promise<CuttingProxy> {
  const [host, port] = upstream.split(':')
  const pairs = new Set<Socket>()
  const server = createServer((client) => {
    const other = connect(Number(port), host)
    for (const socket of [client, other]) {
      socket.on('error', () => undefined)
      socket.on('close', () => {
        pairs.delete(client)
        client.destroy()
        other.destroy()
      })
    }
    pairs.add(client)
    client.pipe(other)
    other.on('data', (bytes) => {
      if (!proxy.losesResponses) client.write(bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: CuttingProxy = {
    authority: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    losesResponses: false,
    cut() {
      for (const client of pairs) client.resetAndDestroy()
    },
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      proxy.cut()
      return closed
    },
  }
  return proxy
}
