/** The bounds of the listener of challenges, by connections that use up each of them. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestSystem } from '../../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../../telemetry/log.ts'
import {
  CHALLENGE_CONNECTIONS_MAX,
  CHALLENGE_CONNECTIONS_PER_PEER_MAX,
  CHALLENGE_HEAD_BYTES_MAX,
  CHALLENGE_REJECTIONS_PER_SECOND_MAX,
  ChallengeListener,
} from './challenge-listener.ts'

const DEADLINE_MS = 120_000
const DOMAIN = 'api.test.example'
const PATH = '/.well-known/acme-challenge/token'

let log: MemoryLog
let system: TestSystem
let listener: ChallengeListener
let sockets: Socket[]

beforeEach(() => {
  log = memoryLog()
  system = new TestSystem({ millis: 0 })
  sockets = []
  listener = start()
})

afterEach(() => {
  for (const socket of sockets) socket.destroy()
  listener.stop()
})

function start(connectionMillis?: number): ChallengeListener {
  const listen = { host: '127.0.0.1', port: 0, loopback: true }
  const options = { listen, domains: [DOMAIN], system, log: log.log }
  return new ChallengeListener(
    connectionMillis === undefined ? options : { ...options, connectionMillis },
  )
}

async function open(localAddress = '127.0.0.1'): Promise<Socket> {
  const port = Number(listener.address.split(':')[1])
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  sockets.push(socket)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** Resolves when the connection has ended, even by a reset. */
async function end(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
}

/** Resolves with everything that the listener sends until it ends the connection. */
async function received(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (part) => {
    text += part
  })
  await end(socket)
  return text
}

async function answerTo(head: string): Promise<string> {
  const socket = await open()
  const all = received(socket)
  socket.write(`${head}\r\n\r\n`)
  return all
}

const get = (path: string, host = DOMAIN) => answerTo(`GET ${path} HTTP/1.1\r\nHost: ${host}`)

/** Resolves once the listener has that many connections: it accepts them in its own time. */
const holds = (connections: number) =>
  expect.poll(() => listener.connections, { timeout: DEADLINE_MS }).toBe(connections)

test('a published challenge is answered, and a withdrawn one is not', async () => {
  listener.publish('token', 'token.thumbprint')
  expect(await get(PATH)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\ntoken\.thumbprint$/)
  expect(await answerTo(`HEAD ${PATH} HTTP/1.1\r\nHost: ${DOMAIN}`)).toMatch(/\r\n\r\n$/)
  listener.withdraw('token')
  expect(await get(PATH)).toMatch(/^HTTP\/1\.1 404 /)
})

test('requests for a domain are redirected, and those for another host are rejected', async () => {
  expect(await get('/a?b')).toContain(`\r\nLocation: https://${DOMAIN}/a?b\r\n`)
  expect(await get('/a', `${DOMAIN}:80`)).toMatch(/^HTTP\/1\.1 308 /)
  expect(await get('/a', 'other.example')).toMatch(/^HTTP\/1\.1 404 /)
  expect(await get('/a', `${DOMAIN}\r\nHost: other.example`)).toMatch(/^HTTP\/1\.1 404 /)
  expect(await answerTo(`POST /a HTTP/1.1\r\nHost: ${DOMAIN}`)).toMatch(/^HTTP\/1\.1 404 /)
  expect(await answerTo('nonsense')).toMatch(/^HTTP\/1\.1 400 /)
})

test('a head in parts is answered, and one beyond the limit ends its connection', async () => {
  listener.publish('token', 'token.thumbprint')
  const slow = await open()
  const answer = received(slow)
  slow.write(`GET ${PATH} HTTP/1.1\r\n`)
  await new Promise((resolve) => setImmediate(resolve))
  slow.write('\r\n')
  expect(await answer).toContain('200 OK')
  const large = await open()
  const nothing = received(large)
  large.write(`GET / HTTP/1.1\r\nX: ${'a'.repeat(CHALLENGE_HEAD_BYTES_MAX)}`)
  expect(await nothing).toBe('')
})

test('a peer has a limited number of connections, which leaves others their own', async () => {
  const held: Socket[] = []
  for (let i = 0; i < CHALLENGE_CONNECTIONS_PER_PEER_MAX; i++) held.push(await open())
  await holds(CHALLENGE_CONNECTIONS_PER_PEER_MAX)
  const beyond = await open()
  await end(beyond)
  const other = await open('127.0.0.2')
  const answer = received(other)
  other.write(`GET / HTTP/1.1\r\nHost: ${DOMAIN}\r\n\r\n`)
  expect(await answer).toContain('308')
  held[0]!.destroy()
  await holds(CHALLENGE_CONNECTIONS_PER_PEER_MAX - 1)
  expect(await get('/')).toContain('308')
})

test('the oldest connection gives way to one beyond the limit of all', async () => {
  listener.stop()
  // Nothing but the limit ends the first connection before the deadline of the test.
  listener = start(3_600_000)
  const first = await open('127.0.1.1')
  const gone = end(first)
  for (let i = 1; i <= CHALLENGE_CONNECTIONS_MAX; i++) {
    await open(`127.0.1.${1 + Math.floor(i / CHALLENGE_CONNECTIONS_PER_PEER_MAX)}`)
  }
  await gone
  await holds(CHALLENGE_CONNECTIONS_MAX)
})

test('a connection without a request ends after its time', {
  tags: ['slow'],
  timeout: 120_000,
}, async () => {
  const silent = await open()
  expect(await received(silent)).toBe('')
  await holds(0)
})

test('redirects have a rate, and challenges are answered beyond it', async () => {
  listener.publish('token', 'token.thumbprint')
  for (let i = 0; i < CHALLENGE_REJECTIONS_PER_SECOND_MAX; i++) {
    expect(await get('/')).toContain('308')
  }
  expect(await get('/')).toBe('')
  expect(await get(PATH)).toContain('200 OK')
  system.advance(1_000)
  expect(await get('/')).toContain('308')
})

test('one record has the number of all rejections', async () => {
  await get('/', 'other.example')
  await get('/', 'other.example')
  listener.stop()
  const found = log.records().filter(({ event }) => event === 'server.challenges_rejected')
  expect(found).toMatchObject([{ rejected: 2 }])
})
