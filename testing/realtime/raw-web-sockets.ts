/** A WebSocket peer that sends any frames, valid or not, and records those that it receives. */
import { connect, type Socket } from 'node:net'
import { vi } from 'vitest'
import { realtimeProtocol } from '../../src/wire/realtime.ts'

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface Frame {
  readonly opcode: number
  /** True for the last frame of a message; the default. */
  readonly isLast?: boolean
  /** The three reserved bits, 0 by default. */
  readonly reserved?: number
  readonly payload?: string | Uint8Array
  /** True if the payload is masked, as a client must; the default. */
  readonly isMasked?: boolean
  /** Bytes of the length field: 1, 3 or 9; the shortest that fits by default. */
  readonly lengthBytes?: 1 | 3 | 9
  /** Length that the header announces; that of the payload by default. */
  readonly length?: number
}

const MASK = Uint8Array.of(0x37, 0xfa, 0x21, 0x3d)

/** Returns the bytes of a frame (RFC 6455, 5.2). */
export function encodeFrame(frame: Frame): Uint8Array {
  const { opcode, isLast = true, reserved = 0, isMasked = true } = frame
  const payload = Buffer.from((frame.payload ?? '') as string)
  const length = frame.length ?? payload.length
  const shortest = length < 126 ? 1 : length < 65_536 ? 3 : 9
  const lengthBytes = frame.lengthBytes ?? shortest
  const head = Buffer.alloc(1 + lengthBytes)
  head[0] = (isLast ? 0x80 : 0) | (reserved << 4) | opcode
  if (lengthBytes === 1) head[1] = length
  else if (lengthBytes === 3) {
    head[1] = 126
    head.writeUInt16BE(length, 2)
  } else {
    head[1] = 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  if (!isMasked) return Buffer.concat([head, payload])
  head[1]! |= 0x80
  return Buffer.concat([head, MASK, payload.map((byte, i) => byte ^ MASK[i % 4]!)])
}

export interface ReceivedFrame {
  readonly opcode: number
  /** True if the payload begins a compressed message. */
  readonly isCompressed: boolean
  readonly payload: Buffer
}

export interface RawWebSocket {
  /** The extensions that the server has accepted; null for none. */
  readonly extensions: string | null
  readonly frames: readonly ReceivedFrame[]
  /** True once the server has closed the connection. */
  readonly hasEnded: boolean
  send(...frames: readonly Frame[]): void
  /** Sends bytes unchanged, in pieces of this size. */
  write(bytes: Uint8Array, piece?: number): void
  /** Waits for the end; returns the code of the close frame, null if there was none. */
  closeCode(): Promise<number | null>
  /** Waits for as many frames of this kind, and returns the last of them. */
  next(opcode: number, count?: number): Promise<ReceivedFrame>
  destroy(): void
}

const WAIT = { timeout: 60_000, interval: 2 }

/** Opens a connection to `host:port` and completes the handshake. */
export async function openRawWebSocket(
  address: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawWebSocket> {
  const [host, port] = [address.slice(0, address.lastIndexOf(':')), address.split(':').at(-1)]
  const socket = connect(Number(port), host)
  const frames: ReceivedFrame[] = []
  let [hasEnded, isOpen] = [false, false]
  let rest: Buffer = Buffer.alloc(0)
  let extensions: string | null = null
  socket.on('error', () => undefined)
  socket.on('close', () => {
    hasEnded = true
  })
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    const end = isOpen ? -1 : rest.indexOf('\r\n\r\n')
    if (end >= 0) {
      const head = rest.toString('latin1', 0, end)
      isOpen = head.startsWith('HTTP/1.1 101')
      extensions = /\r\nsec-websocket-extensions: *([^\r]*)/i.exec(head)?.[1] ?? null
      rest = rest.subarray(end + 4)
    }
    if (isOpen) rest = readFrames(rest, frames)
  })
  socket.write(handshake(address, headers))
  await vi.waitFor(() => {
    if (!isOpen) throw new Error('no WebSocket')
  }, WAIT)
  return {
    extensions,
    frames,
    get hasEnded() {
      return hasEnded
    },
    send: (...sent) => void socket.write(Buffer.concat(sent.map(encodeFrame))),
    write: (bytes, piece = bytes.length) => writePieces(socket, bytes, piece),
    closeCode: () =>
      vi.waitFor(() => {
        if (!hasEnded) throw new Error('the connection is open')
        const close = frames.find(({ opcode }) => opcode === OPCODE.close)
        return close === undefined ? null : close.payload.readUInt16BE(0)
      }, WAIT),
    next: (opcode, count = 1) =>
      vi.waitFor(() => {
        const found = frames.filter((frame) => frame.opcode === opcode)[count - 1]
        if (found === undefined) throw new Error(`no frame ${opcode}`)
        return found
      }, WAIT),
    destroy: () => void socket.destroy(),
  }
}

/** Returns the request of an upgrade. */
export function handshake(address: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({
    host: address,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-protocol': realtimeProtocol(1),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}`)
  return ['GET /v1/realtime HTTP/1.1', ...lines, '', ''].join('\r\n')
}

/** Reads the complete frames into `frames`; returns the bytes of an incomplete one. */
export function readFrames(bytes: Buffer, frames: ReceivedFrame[]): Buffer {
  let at = 0
  while (bytes.length - at >= 2) {
    const short = bytes[at + 1]! & 0x7f
    const head = short < 126 ? 2 : short === 126 ? 4 : 10
    if (bytes.length - at < head) break
    const length =
      short < 126 ? short : head === 4 ? bytes.readUInt16BE(at + 2) : bytes.readUInt32BE(at + 6)
    if (bytes.length - at < head + length) break
    frames.push({
      opcode: bytes[at]! & 0x0f,
      isCompressed: (bytes[at]! & 0x40) !== 0,
      payload: Buffer.from(bytes.subarray(at + head, at + head + length)),
    })
    at += head + length
  }
  return bytes.subarray(at)
}

function writePieces(socket: Socket, bytes: Uint8Array, piece: number): void {
  socket.setNoDelay(true)
  for (let at = 0; at < bytes.length; at += piece) socket.write(bytes.subarray(at, at + piece))
}
