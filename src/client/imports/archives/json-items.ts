/** Splits a file with one list of JSON objects into its items, without reading it as a whole. */
import { exportInvalid } from './export-fault.ts'
import { EXPORT_LINE_BYTES_MAX } from './lines.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN = [0x5b, 0x7b]
const CLOSE = [0x5d, 0x7d]
/** A list, or an object whose first field is the list `results` or `users`. */
const HEAD = /^\ufeff?\s*(?:\{\s*"(?:results|users)"\s*:\s*)?\[/
const HEAD_BYTES_MAX = 256

/**
 * Yields the text of each item. The items are not checked to be JSON. Throws CLIENT_EXPORT_INVALID
 * for another form, an item that is too long, and a list that does not end.
 */
export async function* itemsOf(
  name: string,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const splitter = new ItemSplitter(name)
  let head: Uint8Array | null = new Uint8Array()
  for await (const chunk of content) {
    let rest: Uint8Array = chunk
    if (head !== null) {
      head = Buffer.concat([head, chunk])
      const start = startOf(head)
      if (start === null && head.length >= HEAD_BYTES_MAX) throw notAList(name)
      if (start === null) continue
      rest = head.subarray(start)
      head = null
    }
    yield* splitter.take(rest)
    if (splitter.isDone) return
  }
  if (head !== null) throw notAList(name)
  throw exportInvalid(`The list of ${name} does not end.`)
}

function startOf(bytes: Uint8Array): number | null {
  const text = Buffer.from(bytes.subarray(0, HEAD_BYTES_MAX)).toString('latin1')
  const utf8 = text.replace(/^\u00ef\u00bb\u00bf/, '')
  const match = HEAD.exec(utf8)
  return match === null ? null : match[0].length + text.length - utf8.length
}

class ItemSplitter {
  readonly #name: string
  #depth = 0
  #isText = false
  #isEscaped = false
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** True once the list has ended. What follows it is ignored. */
  isDone = false

  constructor(name: string) {
    this.#name = name
  }

  *take(chunk: Uint8Array): Generator<Uint8Array> {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.#isText) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) this.#isText = false
      } else if (byte === QUOTE) this.#isText = true
      else if (OPEN.includes(byte)) this.#depth += 1
      else if (CLOSE.includes(byte) && this.#depth > 0) this.#depth -= 1
      else if (this.#depth === 0 && (byte === COMMA || CLOSE.includes(byte))) {
        const item = this.#end(chunk.subarray(from, at))
        if (item !== null) yield item
        from = at + 1
        this.isDone = byte !== COMMA
        if (this.isDone) return
      }
    }
    if (from === chunk.length) return
    this.#keep(chunk.slice(from))
  }

  #end(last: Uint8Array): Uint8Array | null {
    this.#keep(last)
    const item = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    return item.every((byte) => byte <= 0x20) ? null : item
  }

  #keep(piece: Uint8Array): void {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    if (this.#bytes <= EXPORT_LINE_BYTES_MAX) return
    throw exportInvalid(`An item of ${this.#name} has more than ${EXPORT_LINE_BYTES_MAX} bytes.`)
  }
}

function notAList(name: string) {
  return exportInvalid(`${name} has neither a list nor an object that begins with one.`)
}
