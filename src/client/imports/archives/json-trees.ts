/**
 * Reads a JSON document of any size: the containers of its upper levels piece by piece, and each
 * value below them as text. Only one value, the keys above it, and a bounded number of fingerprints
 * of keys are in memory.
 */
import { parseStrictJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { explanation } from '../../explanations.ts'
import { exportInvalid } from './export-fault.ts'
import { EXPORT_LINE_BYTES_MAX } from './lines.ts'
import { KeyFingerprints, type KeyOfObject, RepeatedKeys } from './repeated-keys.ts'

/** Keys, and indexes of lists, from the top. */
export type JsonPath = readonly string[]

/** A value that was not descended into, or null at the end of a container that was. */
export interface JsonEvent {
  readonly path: JsonPath
  /** The text of the value. Brackets and quotes are balanced; it is not checked further. */
  readonly value: Uint8Array | null
}

export interface TreeReading {
  /** Returns whether the members of the container at the path are events of their own. */
  readonly descends: (path: JsonPath, isList: boolean) => boolean
  /**
   * Returns whether the key at the end of the path may stand once alone in its object. All keys do
   * by default; the caller rejects others itself.
   */
  readonly isUnique?: (path: JsonPath) => boolean
  /** The next step where a value is too long. */
  readonly nextIfTooLong: string | null
}

/** Takes the key of an object. Returns true if it is known to repeat another one. */
type KeyCheck = (key: KeyOfObject) => boolean

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]
const LEVELS_MAX = 1_000
const KEY_BYTES_MAX = 16 * 1024

/**
 * Yields the values in the order of the document, and throws CLIENT_EXPORT_INVALID at its end if a
 * key is repeated in an object that was descended into. `read` returns the document from its
 * beginning.
 */
export async function* treeOf(
  name: string,
  read: () => AsyncIterable<Uint8Array>,
  reading: TreeReading,
): AsyncGenerator<JsonEvent> {
  const fingerprints = new KeyFingerprints()
  try {
    const reader = new TreeReader(name, reading, (key) => {
      fingerprints.add(key)
      return false
    })
    for await (const chunk of read()) yield* reader.take(chunk)
    yield* reader.end()
    const repeated = fingerprints.repeated()
    if (repeated.size > 0) await requireUnique(name, read, reading, new RepeatedKeys(repeated))
  } finally {
    fingerprints.remove()
  }
}

/** Reads the document again. Throws CLIENT_EXPORT_INVALID with the path of a repeated key. */
async function requireUnique(
  name: string,
  read: () => AsyncIterable<Uint8Array>,
  reading: TreeReading,
  keys: RepeatedKeys,
): Promise<void> {
  const reader = new TreeReader(name, reading, (key) => keys.add(key))
  for await (const chunk of read()) {
    for (const _ of reader.take(chunk));
  }
}

type State = 'value' | 'first item' | 'first key' | 'key' | 'colon' | 'next' | 'end'
type Kind = 'key' | 'text' | 'container' | 'word'

interface Level {
  readonly close: number
  /** Number of the container in the order of the document. */
  readonly number: number
  /** Index of the next item; null in an object. */
  index: number | null
}

class TreeReader {
  readonly #name: string
  readonly #reading: TreeReading
  readonly #isRepeated: KeyCheck
  #containers = 0
  readonly #levels: Level[] = []
  readonly #path: string[] = []
  #state: State = 'value'
  /** The text that is being read; null between texts. */
  #kind: Kind | null = null
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** Ends of the containers inside a value. */
  readonly #closes: number[] = []
  #isQuoted = false
  #isEscaped = false
  /** Bytes of a byte order mark that were read. */
  #marks = 0

  constructor(name: string, reading: TreeReading, isRepeated: KeyCheck) {
    this.#name = name
    this.#reading = reading
    this.#isRepeated = isRepeated
  }

  *take(chunk: Uint8Array): Generator<JsonEvent> {
    for (let at = 0; at < chunk.length; ) {
      if (this.#kind === null) {
        const event = this.#step(chunk[at]!)
        if (event !== null) yield event
        // The first byte of a text is read again, as a part of it.
        if (this.#kind === null) at += 1
        continue
      }
      const end = this.#endOf(chunk, at)
      this.#keep(chunk, at, end ?? chunk.length)
      if (end === null) break
      at = end
      const event = this.#finish()
      if (event !== null) yield event
    }
  }

  *end(): Generator<JsonEvent> {
    if (this.#kind === 'word') yield this.#finish()!
    if (this.#state !== 'end' || this.#kind !== null) throw this.#invalid('ends too early')
  }

  /** Takes a byte between texts. */
  #step(byte: number): JsonEvent | null {
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return null
    switch (this.#state) {
      case 'first item':
        if (byte === CLOSE_LIST) return this.#leave()
        this.#begin(byte)
        return null
      case 'value':
        if (byte === BYTE_ORDER_MARK[this.#marks] && this.#levels.length === 0) {
          this.#marks += 1
          return null
        }
        if (this.#marks % BYTE_ORDER_MARK.length !== 0) throw this.#invalid('is no JSON')
        this.#begin(byte)
        return null
      case 'first key':
        if (byte === CLOSE_OBJECT) return this.#leave()
        return this.#beginKey(byte)
      case 'key':
        return this.#beginKey(byte)
      case 'colon':
        if (byte !== COLON) throw this.#invalid('lacks a colon')
        this.#state = 'value'
        return null
      case 'next':
        return this.#next(byte)
      case 'end':
        throw this.#invalid('has text after its end')
    }
  }

  #next(byte: number): JsonEvent | null {
    const level = this.#levels.at(-1)!
    if (byte === level.close) return this.#leave()
    if (byte !== COMMA) throw this.#invalid('lacks a comma')
    this.#state = level.index === null ? 'key' : 'value'
    return null
  }

  #beginKey(byte: number): null {
    if (byte !== QUOTE) throw this.#invalid('lacks a key')
    this.#kind = 'key'
    return null
  }

  /** Begins a value: a container whose members are events, or a text. */
  #begin(byte: number): void {
    const level = this.#levels.at(-1)
    if (level !== undefined && level.index !== null) this.#path.push(String(level.index++))
    const isList = byte === OPEN_LIST
    const isContainer = byte === OPEN_OBJECT || isList
    if (isContainer && this.#reading.descends(this.#path, isList)) {
      if (this.#levels.length === LEVELS_MAX) throw this.#invalid('has too many levels')
      this.#levels.push({
        close: isList ? CLOSE_LIST : CLOSE_OBJECT,
        number: this.#containers++,
        index: isList ? 0 : null,
      })
      this.#state = isList ? 'first item' : 'first key'
      // The bracket itself is taken by the caller, since no text has begun.
      return
    }
    this.#kind = isContainer ? 'container' : byte === QUOTE ? 'text' : 'word'
  }

  /** Ends the container that is read. */
  #leave(): JsonEvent {
    this.#levels.pop()
    return this.#event(null)
  }

  #event(value: Uint8Array | null): JsonEvent {
    const event = { path: [...this.#path], value }
    this.#path.pop()
    this.#state = this.#levels.length === 0 ? 'end' : 'next'
    return event
  }

  /** Returns the index behind the text, or null if it does not end in the chunk. */
  #endOf(chunk: Uint8Array, from: number): number | null {
    if (this.#kind === 'word') return this.#endOfWord(chunk, from)
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.#isQuoted) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) {
          this.#isQuoted = false
          if (this.#closes.length === 0) return at + 1
        }
      } else if (byte === QUOTE) this.#isQuoted = true
      else if (byte === OPEN_OBJECT) this.#open(CLOSE_OBJECT)
      else if (byte === OPEN_LIST) this.#open(CLOSE_LIST)
      else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        if (this.#closes.pop() !== byte) throw this.#invalid('has brackets that do not match')
        if (this.#closes.length === 0) return at + 1
      }
    }
    return null
  }

  #endOfWord(chunk: Uint8Array, from: number): number | null {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (byte <= 0x20 || byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_LIST) return at
    }
    return null
  }

  #open(close: number): void {
    if (this.#closes.length === LEVELS_MAX) throw this.#invalid('has too many levels')
    this.#closes.push(close)
  }

  #keep(chunk: Uint8Array, from: number, end: number): void {
    this.#bytes += end - from
    const max = this.#kind === 'key' ? KEY_BYTES_MAX : EXPORT_LINE_BYTES_MAX
    if (this.#bytes > max) {
      const what = this.#kind === 'key' ? 'key' : 'value'
      const next = this.#kind === 'key' ? null : this.#reading.nextIfTooLong
      throw this.#invalid(`has a ${what} of more than ${max} bytes`, next)
    }
    if (end > from) this.#pieces.push(chunk.slice(from, end))
  }

  #finish(): JsonEvent | null {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces)
    const kind = this.#kind
    this.#pieces = []
    this.#bytes = 0
    this.#kind = null
    if (kind === 'key') {
      this.#takeKey(this.#parsed(bytes) as string)
      this.#state = 'colon'
      return null
    }
    // A word is checked at once: text between values must not pass as one.
    if (kind === 'word') this.#parsed(bytes)
    return this.#event(bytes)
  }

  #takeKey(key: string): void {
    this.#path.push(key)
    const { isUnique = () => true } = this.#reading
    const object = this.#levels.at(-1)!.number
    if (isUnique(this.#path) && this.#isRepeated({ object, key })) {
      throw this.#invalid('has a key twice')
    }
  }

  #parsed(bytes: Uint8Array) {
    try {
      return parseStrictJson(bytes, { depthMax: 1, entriesMax: 1, roundsIntegers: true })
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw this.#invalid(`is no JSON: expected ${error.rule}`)
    }
  }

  #invalid(how: string, next: string | null = null) {
    const at = this.#path.map((key) => key.slice(0, 100)).join('/')
    const where = at === '' ? '' : `, at ${at.slice(0, 300)}`
    return exportInvalid(`${this.#name} ${how}${where}.`, explanation({ next }))
  }
}
