/** Requests to hooks as bytes, of which a careful client could send none. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Returns the bytes of a request: its head lines behind `Host`, and what follows the head. */
export function requestBytes(path: string, lines: readonly string[], body = ''): string {
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...lines]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

export function chunked(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
}

export function openSocket(origin: string): Socket {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  // The server resets connections whose requests it does not read to the end.
  socket.on('error', () => undefined)
  return socket
}

/** Sends bytes and resolves with all that comes back until the server closes the connection. */
export async function exchange(origin: string, bytes: string): Promise<string> {
  const socket = openSocket(origin)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  const closed = once(socket, 'close')
  socket.write(bytes)
  await closed
  return text
}

/** Returns the statuses of the responses in a text. */
export function statusesOf(text: string): readonly number[] {
  return [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
}
