/** A WebSocket that reads only when its owner decides, so that it can be a slow reader. */
import { connect, type Socket } from 'node:net'
import { type RealtimeVersion, realtimeProtocol } from '../../src/wire/realtime.ts'
import {
  encodeFrame,
  handshake,
  OPCODE,
  type ReceivedFrame,
  readFrames,
} from '../../testing/realtime/raw-web-sockets.ts'

export interface MessageEvents {
  readonly onMessage: (text: string) => void
  readonly onUpgraded?: () => void
  /** Called once, also if the connection could not be opened. */
  readonly onClosed: () => void
}

export class MessageSocket {
  readonly #socket: Socket
  readonly #events: MessageEvents
  readonly #version: RealtimeVersion
  /** Messages that wait for the upgrade. */
  readonly #waiting: object[] = []
  #rest: Buffer = Buffer.alloc(0)
  #isUpgraded = false
  #isClosed = false

  /** Opens a connection to the origin. Messages may be sent at once. */
  constructor(origin: string, events: MessageEvents, version: RealtimeVersion = 1) {
    const { hostname, port, host } = new URL(origin)
    this.#events = events
    this.#version = version
    this.#socket = connect(Number(port), hostname)
    this.#socket.on('error', () => this.#close())
    this.#socket.on('close', () => this.#close())
    this.#socket.on('data', (bytes: Buffer) => this.#take(bytes))
    this.#socket.write(handshake(host, { 'sec-websocket-protocol': realtimeProtocol(version) }))
  }

  /** The port of this end of the connection. */
  get localPort(): number {
    return this.#socket.localPort!
  }

  send(message: object): void {
    if (!this.#isUpgraded) {
      this.#waiting.push(message)
      return
    }
    const payload = JSON.stringify({ version: this.#version, ...message })
    this.#socket.write(encodeFrame({ opcode: OPCODE.text, payload }))
  }

  /** Stops to read. The server notices once the buffers of the connection are full. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Ends the connection without a close frame. */
  cut(): void {
    this.#socket.destroy()
    this.#close()
  }

  #take(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    if (!this.#isUpgraded) {
      const end = this.#rest.indexOf('\r\n\r\n')
      if (end < 0) return
      if (!this.#rest.toString('latin1', 0, end).startsWith('HTTP/1.1 101')) {
        this.cut()
        return
      }
      this.#isUpgraded = true
      this.#events.onUpgraded?.()
      this.#rest = this.#rest.subarray(end + 4)
      for (const message of this.#waiting.splice(0)) this.send(message)
    }
    const frames: ReceivedFrame[] = []
    this.#rest = readFrames(this.#rest, frames)
    for (const { opcode, payload } of frames) {
      if (this.#isClosed) return
      if (opcode === OPCODE.text) this.#events.onMessage(payload.toString())
      if (opcode === OPCODE.ping) this.#socket.write(encodeFrame({ opcode: OPCODE.pong, payload }))
      if (opcode === OPCODE.close) this.cut()
    }
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#events.onClosed()
  }
}
