/**
 * Goal: states are compressed for clients that offer it, and nothing that a client compresses costs
 * more than an ordinary message. Method: raw frames over a real socket (RFC 7692).
 */
import zlib from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { functionManifest } from '../../../../testing/products.ts'
import {
  type Frame,
  OPCODE,
  openRawWebSocket,
  type RawWebSocket,
  type ReceivedFrame,
} from '../../../../testing/realtime/raw-web-sockets.ts'
import { TestSystem } from '../../../system/system.ts'
import { CompressionTime } from './compression-time.ts'

const { continuation, text, close, ping, pong } = OPCODE
const OFFER = 'permessage-deflate; client_max_window_bits'
/** The reserved bit of the first frame of a compressed message. */
const COMPRESSED = 4
const SECRET = 'the secret of the result '.repeat(100)
const KIB64 = 64 * 1024

let server: FileServer
let file: string
let opened: RawWebSocket[] = []

beforeAll(async () => {
  const query = {
    clients: ['confidential'],
    arguments: { text: { type: 'string' } },
    returns: { type: 'string' },
  } as const
  server = await openFileServer({
    functions: [
      functionManifest('a.granted', query),
      functionManifest('a.private', { ...query, compress: false }),
      functionManifest('a.text', query),
    ],
    tables: [],
    handlers: {
      'a.granted': async (ctx) => {
        const grant = { expiresInSeconds: 60, fileName: null }
        const { token } = await ctx.send(['grantDownload', file, grant])
        return SECRET + token
      },
      'a.private': () => SECRET,
      'a.text': (_, { text: count }) => 'x'.repeat(Number(count)),
    },
  })
  file = await server.upload('bytes')
})
afterEach(() => {
  for (const socket of opened) socket.destroy()
  opened = []
})
afterAll(() => server.close())

async function open(offer: string | null): Promise<RawWebSocket> {
  const headers = offer === null ? {} : { 'sec-websocket-extensions': offer }
  const socket = await openRawWebSocket(new URL(server.origin).host, headers)
  opened.push(socket)
  return socket
}

async function authenticated(offer: string | null = OFFER): Promise<RawWebSocket> {
  const socket = await open(offer)
  send(socket, { type: 'authenticate', applicationKey: server.gateway.key })
  await socket.next(text)
  return socket
}

function send(socket: RawWebSocket, message: object): void {
  socket.send({ opcode: text, payload: JSON.stringify({ version: 1, ...message }) })
}

/** Subscribes and returns the first message after it. */
async function firstState(socket: RawWebSocket, name: string, count = 0): Promise<ReceivedFrame> {
  const value = [{ key: 'text', value: { type: 'string', value: String(count) } }]
  const { length } = socket.frames
  send(socket, {
    type: 'subscribe',
    subscriptionId: `s${length}`,
    target: 'channel:production',
    function: name,
    arguments: { type: 'object', value },
  })
  return socket.next(text, length + 1)
}

/** Compresses one message: without the end that every message would have (RFC 7692, 7.2.1). */
function deflated(payload: string | Uint8Array): Buffer {
  const options = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
  return zlib.deflateRawSync(Buffer.from(payload as string), options).subarray(0, -4)
}

function messageOf({ isCompressed, payload }: ReceivedFrame) {
  const end = Buffer.of(0, 0, 0xff, 0xff)
  const options = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
  const bytes = isCompressed ? zlib.inflateRawSync(Buffer.concat([payload, end]), options) : payload
  return JSON.parse(bytes.toString())
}

const pingOf = (nonce: string) => JSON.stringify({ version: 1, type: 'ping', nonce })
const padded = (bytes: number) => pingOf('x').padEnd(bytes)

describe('offers', () => {
  const both = 'permessage-deflate; client_no_context_takeover; server_no_context_takeover'
  test.each([
    ['permessage-deflate', both],
    [OFFER, both],
    ['permessage-deflate; client_max_window_bits=10', both],
    ['permessage-deflate; server_no_context_takeover', both],
    ['permessage-deflate; client_no_context_takeover', both],
    // The window of the shared compressor cannot be reduced.
    ['permessage-deflate; server_max_window_bits=10', null],
    ['permessage-deflate; server_max_window_bits=7', null],
    ['permessage-deflate; server_max_window_bits=x', null],
    ['permessage-deflate; unknown', null],
    ['x-webkit-deflate-frame', null],
    ['', null],
    [null, null],
  ])('the offer %j is answered with %j, and states arrive in any case', async (offer, answer) => {
    const socket = await authenticated(offer)
    expect(socket.extensions).toBe(answer)
    const state = await firstState(socket, 'a.text', 5_000)
    expect(state.isCompressed).toBe(answer !== null)
    expect(messageOf(state).result.value).toBe('x'.repeat(5_000))
    if (answer !== null) expect(state.payload.length).toBeLessThan(400)
  })

  test('an offer of several forms is answered with one that it has, or not at all', async () => {
    const offer = 'permessage-deflate; server_max_window_bits=10, permessage-deflate'
    const socket = await authenticated(offer)
    expect([null, both]).toContain(socket.extensions)
    const state = await firstState(socket, 'a.text', 5_000)
    expect(state.isCompressed).toBe(socket.extensions !== null)
    expect(messageOf(state).result.value).toBe('x'.repeat(5_000))
  })
})

describe('messages to the client', () => {
  test('each state is compressed by itself: no window is kept between two', async () => {
    const socket = await authenticated()
    const [first, second] = [
      await firstState(socket, 'a.text', 2_000),
      await firstState(socket, 'a.text', 2_000),
    ]
    expect([first.isCompressed, second.isCompressed]).toEqual([true, true])
    expect(messageOf(first).result).toEqual(messageOf(second).result)
  })

  test('a state is compressed from 1 KiB on', async () => {
    const socket = await authenticated()
    const state = await firstState(socket, 'a.text', 0)
    const around = state.payload.length
    const [below, from] = [1_023 - around, 1_024 - around]
    const short = await firstState(socket, 'a.text', below)
    expect([short.isCompressed, short.payload.length]).toEqual([false, 1_023])
    const long = await firstState(socket, 'a.text', from)
    expect(long.isCompressed).toBe(true)
    expect(messageOf(long).result.value).toHaveLength(from)
  })

  test('a long state is compressed in each of its parts', async () => {
    const socket = await authenticated()
    await firstState(socket, 'a.text', 200_000)
    const { parts } = messageOf(await socket.next(text, 2))
    await socket.next(text, 1 + parts)
    const states = socket.frames.filter(({ opcode }) => opcode === text).slice(1)
    expect(states.every(({ isCompressed }) => isCompressed)).toBe(true)
    const json = states.map((state) => messageOf(state).fragment).join('')
    expect(JSON.parse(json).value).toBe('x'.repeat(200_000))
  })

  test.each(['a.granted', 'a.private'])(
    'a state that may have a secret is never compressed: %s',
    async (name) => {
      const socket = await authenticated()
      const state = await firstState(socket, name)
      expect(state.isCompressed).toBe(false)
      expect(messageOf(state).result.value).toContain(SECRET)
    },
  )

  test('a message that is no state is never compressed', async () => {
    const socket = await authenticated()
    send(socket, { type: 'ping', nonce: '😀'.repeat(128) })
    const answer = await socket.next(text, 2)
    expect(messageOf(answer)).toMatchObject({ type: 'pong' })
    expect(answer.isCompressed).toBe(false)
  })

  test('a state counts with the bytes that it has without compression', async () => {
    const before = server.gateway.metrics.collect().counters.realtimeSentBytes!
    const socket = await authenticated()
    const state = await firstState(socket, 'a.text', 5_000)
    expect(state.payload.length).toBeLessThan(400)
    const sent = server.gateway.metrics.collect().counters.realtimeSentBytes!
    expect(Number(sent) - Number(before)).toBeGreaterThan(5_000)
  })
})

describe('messages of the client', () => {
  const whole = (payload: string | Uint8Array): Frame => {
    return { opcode: text, reserved: COMPRESSED, payload: deflated(payload) }
  }
  const fragments = (): Frame[] => {
    const bytes = deflated(pingOf('κόσμε😀'))
    return [
      { opcode: text, reserved: COMPRESSED, isLast: false, payload: bytes.subarray(0, 7) },
      { opcode: ping, payload: 'between' },
      { opcode: continuation, isLast: false, payload: bytes.subarray(7, 9) },
      { opcode: continuation, payload: bytes.subarray(9) },
    ]
  }

  test.each<[string, () => readonly Frame[]]>([
    ['in one frame', () => [whole(pingOf('κόσμε😀'))]],
    ['in fragments around a ping', fragments],
    ['although it is not compressed', () => [{ opcode: text, payload: pingOf('κόσμε😀') }]],
    ['if it is as long as allowed', () => [whole(pingOf('κόσμε😀').padEnd(KIB64 - 10))]],
  ])('a message of the client is processed %s', async (_, frames) => {
    const socket = await authenticated()
    socket.send(...frames())
    const answer = await socket.next(text, 2)
    expect(messageOf(answer)).toMatchObject({ type: 'pong', nonce: 'κόσμε😀' })
  })

  test.each<[string, number, () => readonly Frame[]]>([
    [
      '1009 for a message that expands to 64 KiB and a byte',
      1009,
      () => [whole(padded(KIB64 + 1))],
    ],
    ['1009 for one that expands to 60 MB', 1009, () => [whole(new Uint8Array(60_000_000))]],
    [
      '1009 for fragments that expand to 60 MB',
      1009,
      () => {
        const bytes = deflated(new Uint8Array(60_000_000))
        return [
          { opcode: text, reserved: COMPRESSED, isLast: false, payload: bytes.subarray(0, 20_000) },
          { opcode: continuation, payload: bytes.subarray(20_000) },
        ]
      },
    ],
    [
      '1009 for a compressed frame of more than 64 KiB',
      1009,
      () => [{ opcode: text, reserved: COMPRESSED, length: KIB64 + 1, payload: 'x' }],
    ],
    ['1002 for a compressed ping', 1002, () => [{ opcode: ping, reserved: COMPRESSED }]],
    ['1002 for a compressed pong', 1002, () => [{ opcode: pong, reserved: COMPRESSED }]],
    ['1002 for a compressed close frame', 1002, () => [{ opcode: close, reserved: COMPRESSED }]],
    [
      '1002 for a continuation with the bit',
      1002,
      () => [
        { opcode: text, reserved: COMPRESSED, isLast: false, payload: 'x' },
        { opcode: continuation, reserved: COMPRESSED, payload: 'x' },
      ],
    ],
    ['1002 for another reserved bit', 1002, () => [{ opcode: text, reserved: 6, payload: 'x' }]],
    [
      '1007 for bytes that are no deflate stream',
      1007,
      () => [{ opcode: text, reserved: COMPRESSED, payload: Uint8Array.of(255, 255, 255, 1, 2) }],
    ],
    ['1007 for text that is not UTF-8', 1007, () => [whole(Uint8Array.of(0xff, 0xfe))]],
  ])('a connection ends with %s', async (_, code, frames) => {
    const socket = await authenticated()
    socket.send(...frames())
    expect(await socket.closeCode()).toBe(code)
    expect(socket.frames.filter(({ opcode }) => opcode === close)).toHaveLength(1)
  })

  test('a compressed message without an offer ends the connection with 1002', async () => {
    const socket = await authenticated(null)
    socket.send(whole(pingOf('n')))
    expect(await socket.closeCode()).toBe(1002)
  })

  test('messages that expand cost no more memory than the bound, however many arrive', {
    tags: ['slow'],
  }, async () => {
    const bomb = whole(new Uint8Array(60_000_000))
    const before = process.memoryUsage().rss
    for (let i = 0; i < 50; i++) {
      const socket = await authenticated()
      socket.send(bomb)
      expect(await socket.closeCode()).toBe(1009)
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000)
  })
})

test('states are compressed in a quarter of the time, with 50 ms at once', () => {
  const system = new TestSystem()
  const time = new CompressionTime(system)
  const spend = (millis: number) => time.measure(() => system.advance(millis))
  expect(time.isLeft()).toBe(true)
  spend(49)
  expect(time.isLeft()).toBe(true)
  spend(5)
  // 4 ms too many.
  expect(time.isLeft()).toBe(false)
  system.advance(15)
  expect(time.isLeft()).toBe(false)
  system.advance(2)
  expect(time.isLeft()).toBe(true)
  // A long time without compression does not count for more.
  system.advance(60_000)
  expect(time.isLeft()).toBe(true)
  spend(51)
  expect(time.isLeft()).toBe(false)
})
