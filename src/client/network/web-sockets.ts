/** WebSockets over the connections of the client, with the same rules of proxies and TLS. */
import type { Socket } from '../../app-client/platform.ts'
import type { ClientEnvironment } from '../environment.ts'
import { connect } from './connections.ts'
import { proxyFor } from './proxies.ts'

/** Bytes of a message: twice what the server sends at most. */
const MESSAGE_BYTES_MAX = 128 * 1024

/**
 * Begins to open a WebSocket. `onFailure` gets the reason of its failure, such as the HTTP status
 * of a server that does not upgrade. Throws ConnectFailure, CLIENT_USAGE, the reason of the signal.
 */
export async function openWebSocket(
  environment: Pick<ClientEnvironment, 'variable'>,
  address: string,
  protocols: string | string[],
  options: { readonly signal: AbortSignal; readonly onFailure: (reason: string) => void },
): Promise<Socket> {
  const url = new URL(address)
  const { WebSocket } = await import('ws')
  const proxy = proxyFor(url, (name) => environment.variable(name))
  const connection = await connect(url, proxy, options.signal)
  const socket = new WebSocket(address, protocols, {
    createConnection: () => connection,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
  })
  socket.on('error', (error: Error) => options.onFailure(error.message))
  return socket as unknown as Socket
}
