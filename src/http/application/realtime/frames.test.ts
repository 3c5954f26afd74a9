/**
 * Goal: valid frames of any shape are processed, invalid ones end their connection with the right
 * close code, and no other connection is affected. Method: raw bytes over a real socket, modelled
 * on the cases of the Autobahn test suite for a server without extensions.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import {
  encodeFrame,
  type Frame,
  OPCODE,
  openRawWebSocket,
  type RawWebSocket,
} from '../../../../testing/realtime/raw-web-sockets.ts'
import { type OpenListener, openListener } from '../../../server/listeners.ts'
import { realSystem } from '../../../system/system.ts'
import { memoryLog } from '../../../telemetry/log.ts'
import { APPLICATION_CODES } from '../../errors.ts'

const { continuation, text, binary, close, ping, pong } = OPCODE
const PING = '{"version":1,"type":"ping","nonce":"κόσμε😀"}'
const PING_BYTES = Buffer.from(PING)
/** The message, padded with spaces to `bytes`. */
const padded = (bytes: number) => PING + ' '.repeat(bytes - PING_BYTES.length)

let gateway: TestGateway
let listener: OpenListener
/** A connection that nothing may disturb. */
let bystander: RawWebSocket
let pongs = 0
let opened: RawWebSocket[] = []

beforeAll(async () => {
  gateway = await openTestGateway({ functions: [], tables: [], handlers: {} })
  listener = openListener({
    surface: 'application',
    listen: { host: '127.0.0.1', port: 0 } as never,
    app: gateway.application,
    codes: APPLICATION_CODES,
    system: realSystem(),
    log: memoryLog().log,
    tlsTerminated: false,
  })
  bystander = await authenticated()
  opened = []
})
afterEach(async () => {
  bystander.send({ opcode: text, payload: PING })
  pongs += 1
  // The first message was `authenticated`.
  await bystander.next(text, pongs + 1)
  expect(bystander.frames.every(({ opcode }) => opcode === text)).toBe(true)
  for (const socket of opened) socket.destroy()
  opened = []
})
afterAll(async () => {
  bystander.destroy()
  listener.cut()
  await gateway.close()
})

async function open(): Promise<RawWebSocket> {
  const socket = await openRawWebSocket(listener.address)
  opened.push(socket)
  return socket
}

async function authenticated(): Promise<RawWebSocket> {
  const socket = await open()
  const message = { version: 1, type: 'authenticate', applicationKey: gateway.key }
  socket.send({ opcode: text, payload: JSON.stringify(message) })
  await socket.next(text)
  return socket
}

const closing = (code: number, reason: string | Uint8Array = '') => {
  const bytes = Buffer.from(reason as string)
  const head = Buffer.alloc(2)
  head.writeUInt16BE(code)
  return { opcode: close, payload: Buffer.concat([head, bytes]) }
}
const part = (opcode: number, from: number, to: number, isLast = false): Frame => ({
  opcode,
  isLast,
  payload: PING_BYTES.subarray(from, to),
})
const control = (opcode: number, payload: string) => ({ opcode, payload })

describe('forms of a message', () => {
  test.each<[string, readonly Frame[]]>([
    ['in one frame', [{ opcode: text, payload: PING }]],
    ['with a length of 16 bits', [{ opcode: text, payload: PING.padEnd(126) }]],
    [
      'with a length of 64 bits and as long as allowed',
      [{ opcode: text, payload: padded(64 * 1024) }],
    ],
    [
      'in two frames, cut inside a character',
      [part(text, 0, 40), part(continuation, 40, 999, true)],
    ],
    [
      'in frames of one byte',
      [
        ...Array.from(PING_BYTES, (_, i) => part(i === 0 ? text : continuation, i, i + 1)),
        { opcode: continuation },
      ],
    ],
    [
      'around control frames',
      [
        part(text, 0, 9),
        control(ping, 'between'),
        control(pong, ''),
        part(continuation, 9, 999, true),
      ],
    ],
    ['after an unexpected pong', [control(pong, 'x'), { opcode: text, payload: PING }]],
    [
      'with empty frames',
      [
        { opcode: text, isLast: false },
        { opcode: continuation, isLast: false },
        part(continuation, 0, 999, true),
      ],
    ],
  ])('a message is processed %s', async (_, frames) => {
    const socket = await authenticated()
    socket.send(...frames)
    const { payload } = await socket.next(text, 2)
    expect(JSON.parse(payload.toString())).toMatchObject({ type: 'pong', nonce: 'κόσμε😀' })
  })

  test.each([1, 2, 7])(
    'a message is processed although its bytes arrive in pieces of %s',
    async (piece) => {
      const socket = await authenticated()
      socket.write(encodeFrame({ opcode: text, payload: PING }), piece)
      await socket.next(text, 2)
    },
  )
})

test.each(['', 'hello', 'x'.repeat(125)])(
  'a ping is answered with its payload %#',
  async (sent) => {
    const socket = await authenticated()
    socket.send(control(ping, sent))
    expect((await socket.next(pong)).payload.toString()).toBe(sent)
  },
)

describe('close frames', () => {
  test.each([1000, 1001, 1003, 1007, 1008, 1011, 3000, 3999, 4000, 4999])(
    'a close frame is answered with its code %s',
    async (code) => {
      const socket = await authenticated()
      socket.send(closing(code, 'done'))
      expect(await socket.closeCode()).toBe(code)
    },
  )

  test('a close frame without a code ends the connection', async () => {
    const socket = await authenticated()
    socket.send({ opcode: close })
    await expect.poll(() => socket.hasEnded).toBe(true)
  })
})

const INVALID_UTF8: readonly (readonly [string, Uint8Array])[] = [
  ['a lone continuation byte', Uint8Array.of(0x80)],
  ['an overlong slash', Uint8Array.of(0xc0, 0xaf)],
  ['a surrogate', Uint8Array.of(0xed, 0xa0, 0x80)],
  ['a code point beyond U+10FFFF', Uint8Array.of(0xf4, 0x90, 0x80, 0x80)],
  ['a cut character', Uint8Array.of(0xe2, 0x82)],
]

describe('protocol errors', () => {
  const long = 'x'.repeat(126)
  test.each<[string, number, readonly Frame[]]>([
    ['1002 for a reserved bit', 1002, [{ opcode: text, reserved: 1, payload: PING }]],
    ['1002 for a compressed frame', 1002, [{ opcode: text, reserved: 4, payload: PING }]],
    ['1002 for reserved bits of a ping', 1002, [{ opcode: ping, reserved: 7 }]],
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode): [string, number, readonly Frame[]] => [
      ...([`1002 for the opcode ${opcode}`, 1002, [{ opcode, payload: 'x' }]] as const),
    ]),
    ['1002 for a frame without a mask', 1002, [{ opcode: text, isMasked: false, payload: PING }]],
    ['1002 for a ping of 126 bytes', 1002, [control(ping, long)]],
    ['1002 for a pong of 126 bytes', 1002, [control(pong, long)]],
    ['1002 for a close frame of 126 bytes', 1002, [closing(1000, 'x'.repeat(124))]],
    ['1002 for a fragmented ping', 1002, [{ opcode: ping, isLast: false, payload: 'x' }]],
    ['1002 for a continuation of nothing', 1002, [{ opcode: continuation, payload: 'x' }]],
    [
      '1002 for a message inside another',
      1002,
      [part(text, 0, 9), { opcode: text, payload: PING }],
    ],
    ['1002 for a close frame of one byte', 1002, [control(close, 'x')]],
    ...[0, 999, 1004, 1005, 1006, 1016, 2999, 5000].map(
      (code): [string, number, readonly Frame[]] => [
        ...([`1002 for the close code ${code}`, 1002, [closing(code)]] as const),
      ],
    ),
    ['1007 for a close reason that is not UTF-8', 1007, [closing(1000, Uint8Array.of(0xff))]],
    ...INVALID_UTF8.map(([name, payload]): [string, number, readonly Frame[]] => [
      ...([`1007 for ${name}`, 1007, [{ opcode: text, payload }]] as const),
    ]),
    [
      '1007 for a surrogate that two frames make up',
      1007,
      [
        { opcode: text, isLast: false, payload: Uint8Array.of(0xed) },
        { opcode: continuation, payload: Uint8Array.of(0xa0, 0x80) },
      ],
    ],
    ['1003 for a binary message', 1003, [{ opcode: binary, payload: 'x' }]],
    [
      '1009 for a message of 64 KiB and a byte',
      1009,
      [{ opcode: text, payload: padded(64 * 1024 + 1) }],
    ],
    [
      '1009 for a header that announces too much',
      1009,
      [{ opcode: text, length: 2 ** 40, payload: 'x' }],
    ],
    [
      '1009 for fragments of more than 64 KiB',
      1009,
      [
        { opcode: text, isLast: false, payload: 'x'.repeat(40_000) },
        { opcode: continuation, payload: 'x'.repeat(40_000) },
      ],
    ],
  ])('a connection ends with %s', async (_, code, frames) => {
    const socket = await authenticated()
    socket.send(...frames)
    expect(await socket.closeCode()).toBe(code)
    expect(socket.frames.filter(({ opcode }) => opcode === close)).toHaveLength(1)
  })
})
