/**
 * Clients of an application in a process of their own, so that they use no time of the test. The
 * only argument is a ClientTask as JSON; the report is one line of JSON on standard output.
 */
import { connect, type Socket } from 'node:net'

export interface ClientTask {
  /**
   * `calls` sends small Queries and measures each. `bodies` leaves the last byte of a body unsent,
   * `answers` leaves a response unread, and `envelopes` sends long envelopes, each after the
   * response to the one before.
   */
  readonly kind: 'calls' | 'bodies' | 'answers' | 'envelopes'
  readonly origin: string
  /** Application Keys, which the connections use in turn. */
  readonly keys: readonly string[]
  readonly connections: number
  readonly seconds: number
  /** Size of a body or of a response. */
  readonly bytes: number
}

export interface ClientReport {
  /** Number of responses by status; 0 counts connections without one. */
  readonly statuses: Record<number, number>
  /** Milliseconds of successful calls. */
  readonly p50: number
  readonly p99: number
}

const PAUSE_MILLIS = 5
const task: ClientTask = JSON.parse(process.argv[2]!)
const { hostname, port } = new URL(task.origin)
const endsAt = performance.now() + task.seconds * 1000
const statuses: Record<number, number> = {}
const durations: number[] = []
let made = 0

function envelope(name: string, argument: string): string {
  const fields = `[{"key":"input","value":${argument}}]`
  return (
    `{"version":1,"target":"channel:production","function":"slow.${name}",` +
    `"arguments":{"type":"object","value":${fields}}}`
  )
}

/** A list of lists, since many small values cost the most. The first value differs each time. */
function longEnvelope(): string {
  const item = '{"type":"int64","value":"1000000"}'
  const list = `{"type":"array","value":[${Array(5_000).fill(item).join(',')}]}`
  const count = Math.floor((task.bytes - 1_000) / (list.length + 1))
  return envelope('take', `{"type":"array","value":[${Array(count).fill(list).join(',')}]}`)
}

const LONG = task.kind === 'envelopes' ? longEnvelope() : ''

/** One buffer for all connections, so that the client spends its time on sending. */
const BLANKS = Buffer.alloc(task.kind === 'bodies' ? task.bytes : 0, ' ')

function bodyOf(): Buffer {
  if (task.kind === 'bodies') return BLANKS
  if (task.kind === 'calls') return Buffer.from(envelope('small', '{"type":"int64","value":"1"}'))
  if (task.kind === 'envelopes') {
    made += 1
    return Buffer.from(LONG.replace('1000000', String(1_000_000 + made)))
  }
  // One cached result: the attack targets sending, not computation.
  return Buffer.from(envelope('long', `{"type":"int64","value":"${task.bytes}"}`))
}

function headOf(connection: number, body: Buffer): string {
  const key = task.keys[connection % task.keys.length]
  // Behind the proxy that terminates TLS, each connection is a client with its own address.
  const peer = `10.${task.kind.length}.${connection >> 8}.${connection & 255}`
  return (
    `POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
    `X-Service-Key: ${key}\r\nX-Forwarded-For: ${peer}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n`
  )
}

function count(status: number): void {
  statuses[status] = (statuses[status] ?? 0) + 1
}

/** Milliseconds after the end in which a busy machine may still deliver a response. */
const LATE_MILLIS = 60_000

/**
 * Opens a connection that never completes its part, and holds it until the end. Connections are
 * opened over the first half of the time: all at once, they would measure the network of the
 * machine and the client itself.
 */
async function hold(connection: number): Promise<void> {
  const delayMillis = ((task.seconds * 1000) / 2) * (connection / task.connections)
  await new Promise((resolve) => setTimeout(resolve, delayMillis))
  return new Promise((resolve) => {
    const body = bodyOf()
    const sent = task.kind === 'bodies' ? body.subarray(0, -1) : body
    let status = 0
    const socket = connect(Number(port), hostname, () => {
      socket.write(headOf(connection, body))
      socket.write(sent)
    })
    socket.on('data', (chunk: Buffer) => {
      if (status === 0) status = statusOf(chunk)
      if (status === 200) socket.pause()
    })
    socket.on('error', () => undefined)
    const timer = setInterval(() => {
      const now = performance.now()
      if (now < endsAt || (status === 0 && now < endsAt + LATE_MILLIS)) return
      clearInterval(timer)
      socket.destroy()
      count(status)
      resolve()
    }, 100)
  })
}

function statusOf(chunk: Buffer): number {
  return Number(chunk.subarray(9, 12).toString('latin1'))
}

/** Sends one request after the other on one connection. */
async function repeat(connection: number): Promise<void> {
  const socket = await opened()
  while (performance.now() < endsAt) {
    const body = bodyOf()
    const request = Buffer.concat([Buffer.from(headOf(connection, body)), body])
    const startedAt = performance.now()
    const status = await exchange(socket, request)
    count(status)
    if (status === 200) durations.push(performance.now() - startedAt)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLIS))
  }
  socket.destroy()
}

function opened(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Resolves with the status of a response. Its length is in its head. */
function exchange(socket: Socket, request: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      const [head = '', body] = text.split('\r\n\r\n', 2)
      const length = /content-length: (\d+)/i.exec(head)?.[1]
      if (body === undefined || body.length < Number(length)) return
      socket.off('data', read)
      socket.off('close', fail)
      resolve(Number(head.slice(9, 12)))
    }
    const fail = () => reject(new Error('the connection was closed before the response'))
    socket.on('data', read)
    socket.once('close', fail)
    socket.write(request)
  })
}

const run = task.kind === 'calls' || task.kind === 'envelopes' ? repeat : hold
await Promise.all(Array.from({ length: task.connections }, (_, index) => run(index)))
durations.sort((a, b) => a - b)
const percentile = (part: number) => durations[Math.floor((durations.length - 1) * part)] ?? 0
const report: ClientReport = { statuses, p50: percentile(0.5), p99: percentile(0.99) }
process.stdout.write(`${JSON.stringify(report)}\n`)
