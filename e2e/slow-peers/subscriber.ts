/**
 * Realtime connections of one application in a process of their own. The only argument is a
 * SubscriberTask as JSON; the report is one line of JSON on standard output.
 */
import { connect, type Socket } from 'node:net'
import {
  handshake,
  OPCODE,
  type ReceivedFrame,
  readFrames,
} from '../../testing/realtime/raw-web-sockets.ts'

export interface SubscriberTask {
  readonly origin: string
  readonly key: string
  /** Name of the watched Query; its arguments are a nonce, and padding. */
  readonly function: string
  readonly connections: number
  /** Subscriptions of each connection. No two of them have the same nonce. */
  readonly subscriptions: number
  /** Characters of an argument that the Query does not use. */
  readonly paddingCharacters: number
  /** Characters of white space in each message. */
  readonly blankCharacters: number
  /** Connections that do not read stop to do so once they are authenticated. */
  readonly isReading: boolean
  /** Pings on all connections, which follow the first state of each subscription. */
  readonly pings: number
  /** Seconds that it takes at least. Connections that read wait for the first states too. */
  readonly seconds: number
}

export interface SubscriberReport {
  readonly states: number
  readonly pongs: number
  /** Number of errors by code. */
  readonly errors: Readonly<Record<string, number>>
  /** Connections that the server closed. */
  readonly closed: number
}

/** Messages a second on all connections: the rate of the key allows some more. */
const SUBSCRIPTIONS_PER_SECOND = 1_500
const PINGS_PER_SECOND = 2_750
/** The line on standard error when all subscriptions have their states and the pings begin. */
export const PINGING = 'pinging'
const TICK_MILLIS = 20

const task: SubscriberTask = JSON.parse(process.argv[2]!)
const { hostname, port, host } = new URL(task.origin)
const endsAt = performance.now() + task.seconds * 1000
const errors: Record<string, number> = {}
const counts = { states: 0, pongs: 0, closed: 0 }
const padding = 'x'.repeat(task.paddingCharacters)
const blanks = ' '.repeat(task.blankCharacters)

/** Returns a frame whose mask changes nothing, so that an attack costs its sender little. */
function frameOf(text: string): Buffer {
  const payload = Buffer.from(text)
  const isShort = payload.length < 126
  const head = Buffer.alloc(isShort ? 6 : 8)
  head[0] = 0x80 | OPCODE.text
  if (isShort) head[1] = 0x80 | payload.length
  else {
    head[1] = 0x80 | 126
    head.writeUInt16BE(payload.length, 2)
  }
  return Buffer.concat([head, payload])
}

function send(socket: Socket, message: object): void {
  socket.write(frameOf(`${blanks}${JSON.stringify({ version: 1, ...message })}`))
}

/** Opens a connection and authenticates it. Throws if the server closes it before that. */
function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let [rest, isUpgraded]: [Buffer, boolean] = [Buffer.alloc(0), false]
    let received = ''
    socket.on('error', reject)
    socket.on('close', () => {
      if (performance.now() < endsAt) counts.closed += 1
      reject(new Error(`a connection was closed before it was authenticated: ${received}`))
    })
    socket.on('data', (bytes: Buffer) => {
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      if (!isUpgraded) {
        const end = rest.indexOf('\r\n\r\n')
        if (end < 0) return
        isUpgraded = true
        rest = rest.subarray(end + 4)
        send(socket, { type: 'authenticate', applicationKey: task.key })
      }
      const frames: ReceivedFrame[] = []
      rest = readFrames(rest, frames)
      for (const { opcode, payload } of frames) {
        received = payload.toString('latin1', 0, HEAD_BYTES)
        if (opcode === OPCODE.ping) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
        if (opcode === OPCODE.text) receive(payload, socket, resolve)
      }
    })
    socket.write(handshake(host, {}))
  })
}

/** A message of a state that is not its first one. */
const LATER_PART = /"part":(?!1,)\d/
const HEAD_BYTES = 400

/** The type stands at the beginning of a message, so long ones are not parsed. */
function receive(payload: Buffer, socket: Socket, onAuthenticated: (socket: Socket) => void): void {
  const start = payload.toString('latin1', 0, HEAD_BYTES)
  if (start.includes('"type":"pong"')) counts.pongs += 1
  else if (start.includes('"type":"state"')) counts.states += LATER_PART.test(start) ? 0 : 1
  else if (start.includes('"type":"authenticated"')) onAuthenticated(socket)
  else if (start.includes('"type":"error"')) {
    const { code } = JSON.parse(payload.toString()).error
    errors[code] = (errors[code] ?? 0) + 1
  }
}

function subscribe(socket: Socket, nonce: string, subscriptionId: string): void {
  const entries = [
    { key: 'nonce', value: { type: 'string', value: nonce } },
    { key: 'padding', value: { type: 'string', value: padding } },
  ]
  send(socket, {
    type: 'subscribe',
    subscriptionId,
    target: 'channel:production',
    function: task.function,
    arguments: { type: 'object', value: entries },
  })
}

const tick = () => new Promise((resolve) => setTimeout(resolve, TICK_MILLIS))

/** Calls `act` with 0, 1, 2 and so on at a steady rate. */
async function steadily(
  perSecond: number,
  count: number,
  act: (index: number) => void,
): Promise<void> {
  const startedAt = performance.now()
  for (let made = 0; made < count; ) {
    const due = ((performance.now() - startedAt) * perSecond) / 1000
    for (; made < Math.min(due, count); made++) act(made)
    await tick()
  }
}

const sockets = await Promise.all(Array.from({ length: task.connections }, open))
if (!task.isReading) for (const socket of sockets) socket.pause()
const count = task.subscriptions * sockets.length
await steadily(SUBSCRIPTIONS_PER_SECOND, count, (index) => {
  const id = `s${Math.floor(index / sockets.length)}`
  subscribe(sockets[index % sockets.length]!, `${index}`, id)
})
const isAnswered = () => counts.states + sum(Object.values(errors)) >= count
// A connection that the server has closed has no further answers.
const isOpen = () => sockets.every(({ destroyed }) => !destroyed)
if (task.isReading) while (!isAnswered() && isOpen()) await tick()
if (task.pings > 0) {
  process.stderr.write(PINGING)
  await steadily(PINGS_PER_SECOND, task.pings, (index) => {
    send(sockets[index % sockets.length]!, { type: 'ping', nonce: `${index}` })
  })
}
while (performance.now() < endsAt) await tick()
const report: SubscriberReport = { ...counts, errors }
process.stdout.write(`${JSON.stringify(report)}\n`)
process.exit(0)

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
