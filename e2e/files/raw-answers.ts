/** Answers as they arrive, framing included, which client libraries hide. */
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** The headers by their lowercase names. */
  readonly headers: ReadonlyMap<string, string>
  /** Everything after the head, as it was sent. */
  readonly body: Buffer
}

/** Sends one request and reads until the server closes the connection. */
export async function rawAnswer(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  const { hostname, port, host, pathname, search } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const lines = Object.entries({ ...headers, host, connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${head}\r\n`)
  await new Promise((resolve, reject) => {
    socket.once('close', resolve)
    socket.once('error', reject)
  })
  return parse(Buffer.concat(chunks))
}

function parse(received: Buffer): RawAnswer {
  const end = received.indexOf('\r\n\r\n')
  const [line = '', ...fields] = received.toString('latin1', 0, end).split('\r\n')
  const headers = new Map(
    fields.map((field) => {
      const colon = field.indexOf(':')
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const
    }),
  )
  return { status: Number(line.split(' ')[1]), headers, body: received.subarray(end + 4) }
}

/** Returns the values that say how the body ends: its length, and how it is framed. */
export function framingOf({ status, headers, body }: RawAnswer) {
  const length = headers.get('content-length') ?? null
  return { status, length, coding: headers.get('transfer-encoding') ?? null, bytes: body.length }
}
