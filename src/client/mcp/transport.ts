/**
 * The transport of `svc mcp`: one JSON message for each line of stdin and stdout. A line that is
 * too long is discarded as it comes and answered with an error, and the next one is read.
 */
import type { Readable, Writable } from 'node:stream'
import { deserializeMessage, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'

/**
 * Bytes of one message of an editor; a longer one is answered with an error.
 * @limit Requests: one message to `svc mcp`
 */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024
/** Bytes of the begin and of the end of a message that is too long, where its ID is looked for. */
const EDGE_BYTES = 512
/** Bytes that a line has room for at first. */
const FIRST_BYTES = 4_096
const LINE_FEED = 0x0a
/** The ID of a request, where libraries write it: before everything else, or behind it. */
const ID = String.raw`"id"\s*:\s*(?:([0-9]{1,15})|"([^"\\]{1,128})")`
const VERSION = String.raw`"jsonrpc"\s*:\s*"2\.0"`
const FIRST_ID = new RegExp(`^\\s*\\{\\s*(?:${VERSION}\\s*,\\s*)?${ID}\\s*,`)
const LAST_ID = new RegExp(`,\\s*${ID}\\s*(?:,\\s*${VERSION}\\s*)?\\}\\s*$`)

export class LineTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Called after a message that was too long was answered. */
  onTooLong: () => void = () => {}
  readonly #input: Readable
  readonly #output: Writable
  #line = new Line()

  constructor(input: Readable, output: Writable) {
    this.#input = input
    this.#output = output
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#read)
    this.#input.on('error', this.#fail)
  }

  /** Resolves once the editor reads fast enough for the next message. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#output.write(serializeMessage(message))) return
    await new Promise<void>((resolve) => {
      const end = (): void => {
        this.#output.off('drain', end)
        this.#output.off('close', end)
        resolve()
      }
      this.#output.once('drain', end)
      this.#output.once('close', end)
    })
  }

  async close(): Promise<void> {
    this.#input.off('data', this.#read)
    this.#input.off('error', this.#fail)
    this.#input.pause()
    this.#line = new Line()
    this.onclose?.()
  }

  readonly #fail = (error: Error): void => this.onerror?.(error)

  readonly #read = (chunk: Uint8Array): void => {
    for (let from = 0; from < chunk.length; ) {
      const end = chunk.indexOf(LINE_FEED, from)
      this.#line.add(chunk.subarray(from, end === -1 ? undefined : end))
      if (end === -1) return
      const line = this.#line
      this.#line = new Line()
      this.#receive(line)
      from = end + 1
    }
  }

  #receive(line: Line): void {
    const text = line.text
    if (text === null) {
      this.#answerTooLong(line)
      return
    }
    try {
      this.onmessage?.(deserializeMessage(text))
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** A message without an ID that is known has an answer without one. */
  #answerTooLong(line: Line): void {
    const message = `The message has more than ${MESSAGE_BYTES_MAX} bytes.`
    const error = { code: ErrorCode.InvalidRequest, message }
    const id = line.requestId
    void this.send({ jsonrpc: '2.0', ...(id !== null && { id }), error })
    this.onTooLong()
  }
}

/** The bytes of one line; of one that is too long only its begin and its end. */
class Line {
  #bytes = new Uint8Array(FIRST_BYTES)
  #length = 0
  #isTooLong = false
  #tail = new Uint8Array()

  add(chunk: Uint8Array): void {
    if (this.#isTooLong) {
      this.#tail = lastOf(this.#tail, chunk)
      return
    }
    const length = this.#length + chunk.length
    if (length > MESSAGE_BYTES_MAX) {
      this.#isTooLong = true
      this.#tail = lastOf(this.#bytes.subarray(0, this.#length), chunk)
      this.#bytes = this.#bytes.slice(0, Math.min(EDGE_BYTES, this.#length))
      return
    }
    if (length > this.#bytes.length) this.#grow(length)
    this.#bytes.set(chunk, this.#length)
    this.#length = length
  }

  /** Null for a line that is too long. */
  get text(): string | null {
    if (this.#isTooLong) return null
    return new TextDecoder().decode(this.#bytes.subarray(0, this.#length))
  }

  /** The ID of the request in a line that is too long; null if it is not at its begin or end. */
  get requestId(): string | number | null {
    const begin = new TextDecoder().decode(this.#bytes)
    const end = new TextDecoder().decode(this.#tail)
    const found = FIRST_ID.exec(begin) ?? LAST_ID.exec(end)
    if (found === null) return null
    const [, number, text] = found
    return number === undefined ? text! : Number(number)
  }

  /** Doubles the memory, so that many small chunks cost no more than a few large ones. */
  #grow(length: number): void {
    const bytes = new Uint8Array(
      Math.min(Math.max(length, 2 * this.#bytes.length), MESSAGE_BYTES_MAX),
    )
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
  }
}

function lastOf(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const edges = [first, second].map((bytes) => bytes.subarray(-EDGE_BYTES))
  return Uint8Array.from(Buffer.concat(edges).subarray(-EDGE_BYTES))
}
