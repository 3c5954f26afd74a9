/**
 * A JSON parser that rejects ambiguous documents: no duplicate key, no `__proto__`, no lone
 * surrogate, no number that a double cannot represent as written, no text after the document (RFC
 * 8259) with stricter rules (contract/wire.md, Notation). `JSON.parse` keeps the last duplicate,
 * turns 1e400 into Infinity and rounds beyond 2^53, so it is unsafe for untrusted input.
 */
import { ValidationError } from './validation-error.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface JsonObject {
  readonly [key: string]: Json
}

/** Returns whether data is a JSON object, neither list nor null. */
export function isJsonObject(json: unknown): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

export interface StrictJsonLimits {
  /** Nesting of arrays and objects. */
  readonly depthMax: number
  /** Members of one array or object. */
  readonly entriesMax: number
  /** True if integers beyond 2^53 are rounded, as a float64 is, rather than rejected. */
  readonly roundsIntegers?: boolean
}

/** A tagged value of depth 64 has three levels of JSON for each level, inside an envelope. */
const DEFAULT_LIMITS: StrictJsonLimits = { depthMax: 200, entriesMax: 10_000 }
/** Limits of plain JSON that a validator reads: it accepts such a number only for a float64. */
export const ROUNDED: StrictJsonLimits = { ...DEFAULT_LIMITS, roundsIntegers: true }

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses UTF-8 bytes or text. Throws ValidationError. */
export function parseStrictJson(
  input: Uint8Array | string,
  limits: StrictJsonLimits = DEFAULT_LIMITS,
): Json {
  let text: string
  if (typeof input === 'string') text = input
  else {
    try {
      text = decoder.decode(input)
    } catch {
      throw new ValidationError('UTF-8 text')
    }
  }
  return parseCompact(text, limits) ?? new Parser(text, limits).document()
}

/**
 * Parses a text whose parts are kept for long. The parser's strings are slices, and one of them
 * holds the whole text in memory: a short one that of a message full of white space. Throws
 * ValidationError.
 */
export function parseKeptJson(text: string): Json {
  const compact = parseCompact(text, DEFAULT_LIMITS)
  if (compact !== null) return compact
  return JSON.parse(JSON.stringify(new Parser(text, DEFAULT_LIMITS).document()))
}

/** Parses a file that a person wrote: some editors begin it with a byte order mark. */
export function parseWrittenJson(bytes: Uint8Array): Json {
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return parseStrictJson(isMarked ? bytes.subarray(3) : bytes)
}

/** Longest text that is tried, since a failed attempt is wasted work. */
const COMPACT_CHARACTERS_MAX = 65_536
/** A possible integer beyond 2^53. A match inside a string only costs the fast path. */
const LONG_INTEGER = /(?:^|[:[,])-?[0-9]{16}/

/**
 * Parses a text that equals the output of `JSON.stringify`, as most clients send it: `JSON.parse`
 * is four times as fast as the parser here. A text that both functions reproduce has no duplicate
 * key, no white space, no rounded number and no lone surrogate. Null leaves the text to the parser.
 */
function parseCompact(text: string, limits: StrictJsonLimits): Json {
  if (text.length > COMPACT_CHARACTERS_MAX || text.length > limits.entriesMax * 2) return null
  if (text.includes('": ') || text.includes('\\') || text.includes('__proto__')) return null
  if (LONG_INTEGER.test(text)) return null
  let json: Json
  try {
    json = JSON.parse(text) as Json
  } catch {
    return null
  }
  if (JSON.stringify(json) !== text) return null
  return text.length <= limits.depthMax * 2 || isWithin(json, limits.depthMax) ? json : null
}

function isWithin(json: Json, depthMax: number): boolean {
  if (typeof json !== 'object' || json === null) return true
  if (depthMax === 0) return false
  if (Array.isArray(json)) {
    for (const item of json) if (!isWithin(item, depthMax - 1)) return false
    return true
  }
  for (const key in json) if (!isWithin(json[key]!, depthMax - 1)) return false
  return true
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y
/** Characters other than quote, backslash, control characters and surrogates. */
const PLAIN = /[^"\\\u0000-\u001f\ud800-\udfff]*/y

class Parser {
  readonly #text: string
  readonly #limits: StrictJsonLimits
  #at = 0
  #depth = 0

  constructor(text: string, limits: StrictJsonLimits) {
    this.#text = text
    this.#limits = limits
  }

  document(): Json {
    this.#space()
    const value = this.#value()
    this.#space()
    if (this.#at !== this.#text.length) this.#fail('no text after the JSON document')
    return value
  }

  #value(): Json {
    switch (this.#text.charCodeAt(this.#at)) {
      case 0x22: // "
        return this.#string()
      case 0x7b: // {
        return this.#object()
      case 0x5b: // [
        return this.#array()
      case 0x74: // t
        return this.#word('true', true)
      case 0x66: // f
        return this.#word('false', false)
      case 0x6e: // n
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(): Json {
    this.#enter()
    const object: { [key: string]: Json } = {}
    if (this.#take(0x7d)) return this.#leave(object)
    let entries = 0
    do {
      this.#space()
      if (this.#text.charCodeAt(this.#at) !== 0x22) this.#fail('a key')
      const key = this.#string()
      if (key === '__proto__') this.#fail('no __proto__ key')
      if (Object.hasOwn(object, key)) this.#fail('no duplicate key')
      if (++entries > this.#limits.entriesMax) this.#fail('fewer entries')
      this.#expect(0x3a, 'a colon')
      this.#space()
      object[key] = this.#value()
    } while (this.#take(0x2c))
    this.#expect(0x7d, 'a comma or the end of the object')
    return this.#leave(object)
  }

  #array(): Json {
    this.#enter()
    const array: Json[] = []
    if (this.#take(0x5d)) return this.#leave(array)
    do {
      this.#space()
      if (array.length >= this.#limits.entriesMax) this.#fail('fewer entries')
      array.push(this.#value())
    } while (this.#take(0x2c))
    this.#expect(0x5d, 'a comma or the end of the array')
    return this.#leave(array)
  }

  #string(): string {
    const text = this.#text
    let start = ++this.#at
    let out = ''
    for (;;) {
      PLAIN.lastIndex = this.#at
      PLAIN.test(text)
      this.#at = PLAIN.lastIndex
      const code = text.charCodeAt(this.#at)
      if (code === 0x22) {
        const piece = text.slice(start, this.#at++)
        return out === '' ? piece : out + piece
      }
      if (code >= 0xd800 && code <= 0xdbff) {
        const low = text.charCodeAt(this.#at + 1)
        if (!(low >= 0xdc00 && low <= 0xdfff)) this.#fail('no lone surrogate')
        this.#at += 2
      } else if (code === 0x5c) {
        out += text.slice(start, this.#at) + this.#escape()
        start = this.#at
      } else this.#fail('a closed string without control characters')
    }
  }

  #escape(): string {
    const code = this.#text[this.#at + 1]
    if (code !== 'u') {
      const plain = code === undefined ? undefined : ESCAPES[code]
      if (plain === undefined) this.#fail('a known escape')
      this.#at += 2
      return plain!
    }
    const high = this.#hex()
    if (high < 0xd800 || high > 0xdfff) return String.fromCharCode(high)
    if (high > 0xdbff || this.#text[this.#at] !== '\\' || this.#text[this.#at + 1] !== 'u') {
      this.#fail('no lone surrogate')
    }
    const low = this.#hex()
    if (low < 0xdc00 || low > 0xdfff) this.#fail('no lone surrogate')
    return String.fromCharCode(high, low)
  }

  #hex(): number {
    const digits = this.#text.slice(this.#at + 2, this.#at + 6)
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.#fail('four hex digits')
    this.#at += 6
    return Number.parseInt(digits, 16)
  }

  #number(): number {
    NUMBER.lastIndex = this.#at
    const match = NUMBER.exec(this.#text)
    if (match === null) this.#fail('a JSON value')
    const [written, fraction, exponent] = match!
    const value = Number(written)
    const whole = fraction === undefined && exponent === undefined
    if (!Number.isFinite(value)) this.#fail('a number in range')
    if (whole && !Number.isSafeInteger(value) && !this.#limits.roundsIntegers) {
      this.#fail('an integer within 2^53; write a larger one as a string')
    }
    this.#at += written.length
    return value
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#fail('a JSON value')
    this.#at += word.length
    return value
  }

  #enter(): void {
    this.#at++
    if (++this.#depth > this.#limits.depthMax) this.#fail('less nesting')
  }

  #leave<T>(value: T): T {
    this.#depth--
    return value
  }

  #take(code: number): boolean {
    this.#space()
    if (this.#text.charCodeAt(this.#at) !== code) return false
    this.#at++
    return true
  }

  #expect(code: number, rule: string): void {
    if (!this.#take(code)) this.#fail(rule)
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at++
    }
  }

  #fail(rule: string): never {
    throw new ValidationError(rule, `$ at character ${this.#at}`)
  }
}

const ESCAPES: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
})
