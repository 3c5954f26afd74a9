/**
 * Fakes keep the kind and the form of a value: an e-mail address stays one, texts keep their length
 * and their kinds of characters, integers the number of their digits. Within one copy equal values
 * have equal fakes, and different texts and integers of one form have different ones.
 */
import { INT64_MAX, INT64_MIN, Timestamp } from '../../value/values.ts'
import type { KeyedValues } from './keyed-values.ts'

/** The bounds of a declaration; null for none. */
export interface Bounds<T> {
  readonly minimum: T | null
  readonly maximum: T | null
}

const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/u
const URL = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^/?#\s]+)(\S*)$/u
/** A domain that cannot be registered (RFC 2606), so that no message reaches a person. */
const DOMAIN = '.test'
/** Characters of the local part of a fake address, at least: 60 bits, which never collide. */
const LOCAL_MIN = 12
const LOCAL_MAX = 64
const LABEL_MIN = 4
const LABEL_MAX = 60

const DIGITS = '0123456789'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const UPPER = LOWER.toUpperCase()
/** Spaces and punctuation are the form of a text. */
const FORM = /^[\p{P}\p{Z}\p{Cc}$+<=>^`|~]$/u
/** Beyond this many values, random ones do not collide. */
const POSITIONS_MAX = 2n ** 64n

const DAY_MICROS = 86_400_000_000n
const DAYS = 180n

export class FakeValues {
  readonly #keyed: KeyedValues

  constructor(keyed: KeyedValues) {
    this.#keyed = keyed
  }

  text(text: string): string {
    if (EMAIL.test(text)) return this.#email(text)
    const [, scheme, host, rest] = URL.exec(text) ?? []
    if (scheme === undefined) return this.#characters(text)
    const name = this.#letters('host', text, clamp(host!.length - DOMAIN.length, 12, LABEL_MAX))
    return `${scheme}${name}${DOMAIN}${this.#characters(rest!)}`
  }

  bytes(bytes: Uint8Array): Uint8Array {
    return this.#keyed.bytes('bytes', bytes, bytes.length)
  }

  /** Returns an integer with as many digits and the same sign, within the bounds. */
  integer(value: bigint, { minimum, maximum }: Bounds<bigint>): bigint {
    const [low, high] = [minimum ?? INT64_MIN, maximum ?? INT64_MAX]
    const [least, most] = sameDigits(value)
    const ranges = [
      [max(least, low), min(most, high)],
      [low, high],
    ] as const
    for (const [from, to] of ranges) {
      const isWithin = value >= from && value <= to
      if (!isWithin || from === to) continue
      return from + this.#keyed.permute(`integer:${from}`, value - from, to - from + 1n)
    }
    // The declaration admits this value alone, so it tells nothing.
    return value
  }

  float(value: number, bounds: Bounds<number>): number {
    const { minimum, maximum } = bounds
    if (Number.isSafeInteger(value)) {
      const integers = {
        minimum: toInteger(minimum, Math.ceil),
        maximum: toInteger(maximum, Math.floor),
      }
      return Number(this.integer(BigInt(value), integers))
    }
    const text = String(value)
    const random = this.#keyed.bytes('float', text, text.length + 4)
    const [mantissa, exponent] = text.split('e')
    const digits = [...mantissa!].map((digit, i) =>
      DIGITS.includes(digit) ? String((random[i]! % 9) + 1) : digit,
    )
    const fake = Number([digits.join(''), ...(exponent === undefined ? [] : [exponent])].join('e'))
    const isWithin = fake >= (minimum ?? -Infinity) && fake <= (maximum ?? Infinity)
    if (isWithin && Number.isFinite(fake) && fake !== value) return fake
    const low = minimum ?? Math.min(-Math.abs(value) / 2, (maximum ?? 0) / 2)
    const high = maximum ?? Math.max(Math.abs(value) / 2, low + 1)
    return low + (high - low) * (Buffer.from(random).readUInt32BE(text.length) / 2 ** 32)
  }

  /** Returns a time within 180 days before or after, but not the same day. */
  timestamp({ micros }: Timestamp): Timestamp {
    const random = Buffer.from(this.#keyed.digest('timestamp', String(micros)))
    const distance = DAY_MICROS + (random.readBigUInt64BE(0) % (DAYS * DAY_MICROS))
    const isLater = micros < INT64_MIN + 2n * distance || (random[8]! & 1) === 0
    const isInRange = micros <= INT64_MAX - distance
    return new Timestamp(isLater && isInRange ? micros + distance : micros - distance)
  }

  /** Addresses of up to 22 characters get 22; the others keep their length. */
  #email(text: string): string {
    const room = [...text].length - '@'.length - DOMAIN.length
    const local = clamp(room - LABEL_MIN, LOCAL_MIN, LOCAL_MAX)
    const label = clamp(room - local, LABEL_MIN, LABEL_MAX)
    const letters = this.#letters('email', text, local + label)
    return `${letters.slice(0, local)}@${letters.slice(local)}${DOMAIN}`
  }

  #letters(kind: string, text: string, length: number): string {
    const random = this.#keyed.bytes(kind, text, length * 2)
    return Array.from(
      { length },
      (_, i) => LOWER[(random[2 * i]! * 256 + random[2 * i + 1]!) % 26],
    ).join('')
  }

  /** Replaces each character with one of its kind. */
  #characters(text: string): string {
    const characters = [...text]
    const alphabets = characters.map(alphabetOf)
    let size = 1n
    for (const [i, alphabet] of alphabets.entries()) {
      if (alphabet === null) continue
      // Letters of other scripts become letters of ASCII, of which there are fewer.
      if (!alphabet.includes(characters[i]!)) size = POSITIONS_MAX
      if (size < POSITIONS_MAX) size *= BigInt(alphabet.length)
    }
    if (size === 1n) return text
    if (size < POSITIONS_MAX) return this.#permuted(characters, alphabets, size)
    const random = this.#keyed.bytes('text', text, characters.length * 2)
    return characters
      .map((character, i) => {
        const alphabet = alphabets[i]
        if (alphabet == null) return character
        return alphabet[(random[2 * i]! * 256 + random[2 * i + 1]!) % alphabet.length]
      })
      .join('')
  }

  /** Permutes the texts of one form, so that two texts never get the same fake. */
  #permuted(
    characters: readonly string[],
    alphabets: readonly (string | null)[],
    size: bigint,
  ): string {
    let position = 0n
    for (const [i, alphabet] of alphabets.entries()) {
      if (alphabet === null) continue
      position = position * BigInt(alphabet.length) + BigInt(alphabet.indexOf(characters[i]!))
    }
    const form = characters.map((character, i) => alphabets[i]?.[0] ?? character).join('')
    position = this.#keyed.permute(`text:${form}`, position, size)
    const fake = [...characters]
    for (let i = fake.length - 1; i >= 0; i--) {
      const alphabet = alphabets[i]
      if (alphabet == null) continue
      fake[i] = alphabet[Number(position % BigInt(alphabet.length))]!
      position /= BigInt(alphabet.length)
    }
    return fake.join('')
  }
}

/** Returns the characters that one may be replaced with; null for one that is kept. */
function alphabetOf(character: string): string | null {
  for (const alphabet of [DIGITS, LOWER, UPPER]) if (alphabet.includes(character)) return alphabet
  return FORM.test(character) ? null : LOWER
}

/** Returns the least and the greatest integer with the digits and the sign of the value. */
function sameDigits(value: bigint): readonly [bigint, bigint] {
  const digits = BigInt((value < 0n ? -value : value).toString().length)
  const most = 10n ** digits - 1n
  if (value < 0n) return [-most, -(10n ** (digits - 1n))]
  return [digits === 1n ? 0n : 10n ** (digits - 1n), most]
}

function toInteger(bound: number | null, round: (bound: number) => number): bigint | null {
  if (bound === null) return null
  const safe = clamp(round(bound), Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
  return BigInt(safe)
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
