/**
 * Canonical identifiers: `prefix_` and 26 characters of upper-case Crockford base32 that hold a
 * 48-bit millisecond time and 80 random bits (contract/wire.md, IDs).
 */
import { ValidationError } from './validation-error.ts'

/**
 * Every prefix (contract/management.md, Identifier and credential prefixes; contract/wire.md, IDs).
 */
export const ID_PREFIXES = [
  'opn',
  'opi',
  'ops',
  'opr',
  'prj',
  'env',
  'rel',
  'req',
  'aud',
  'wsr',
  'app',
  'crd',
  'ivc',
  'sch',
  'bkt',
  'stk',
  'upl',
  'fil',
  'mgs',
  'bkp',
  'hst',
] as const
export type IdPrefix = (typeof ID_PREFIXES)[number]
export type Id<P extends string> = string & { readonly __id: P }

export type OperationId = Id<'opn'>
export type InvitationId = Id<'opi'>
export type SessionId = Id<'ops'>
export type OperatorId = Id<'opr'>
export type ProjectId = Id<'prj'>
export type EnvironmentId = Id<'env'>
export type ReleaseId = Id<'rel'>
export type RequestId = Id<'req'>
export type AuditId = Id<'aud'>
export type WorkspaceRevisionId = Id<'wsr'>
export type ClientId = Id<'app'>
export type CredentialId = Id<'crd'>
export type InvocationId = Id<'ivc'>
export type BucketId = Id<'bkt'>
export type StorageKeyId = Id<'stk'>
export type BackupId = Id<'bkp'>
export type HistoryId = Id<'hst'>
/** `<table>_` + ULID. */
export type DocumentId = string & { readonly __document: true }

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
/** Two characters for each ten bits. */
const PAIRS = Array.from({ length: 1024 }, (_, i) => ALPHABET[i >> 5]! + ALPHABET[i & 31]!)
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const TABLE = /^[a-z][a-zA-Z0-9]{0,63}$/
export const TIME_MILLIS_MAX = 2 ** 48 - 1

/**
 * Returns 26 characters. `entropy` has 10 bytes. Throws ValidationError for a time outside 48 bits.
 */
export function encodeUlid(millis: number, entropy: Uint8Array): string {
  if (!Number.isInteger(millis) || millis < 0 || millis > TIME_MILLIS_MAX) {
    throw new ValidationError('a time of 48 bits')
  }
  // The 48 bits in parts of 18 and 30 bits.
  const high = Math.floor(millis / 2 ** 30)
  const low = millis % 2 ** 30
  const time = PAIRS[high >> 10]! + PAIRS[high & 1023]! + PAIRS[low >> 20]!
  return (
    time +
    (PAIRS[(low >> 10) & 1023]! + PAIRS[low & 1023]!) +
    fiveBytes(entropy, 0) +
    fiveBytes(entropy, 5)
  )
}

/** Encodes five bytes as eight characters. */
function fiveBytes(bytes: Uint8Array, at: number): string {
  const high = (bytes[at]! << 12) | (bytes[at + 1]! << 4) | (bytes[at + 2]! >> 4)
  const low = ((bytes[at + 2]! & 15) << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!
  return PAIRS[high >> 10]! + PAIRS[high & 1023]! + PAIRS[low >> 10]! + PAIRS[low & 1023]!
}

/** Decodes a canonical ULID to 16 bytes: 6 of time, 10 of entropy. */
export function decodeUlid(text: string): Uint8Array {
  if (!ULID.test(text)) throw new ValidationError('a canonical ULID')
  const bytes = new Uint8Array(16)
  const view = new DataView(bytes.buffer)
  // The 48 bits of time in parts of 20 and 30 bits; the first two bits are zero.
  const millis = numberIn(text, 0, 4) * 2 ** 30 + numberIn(text, 4, 10)
  view.setUint16(0, Math.floor(millis / 2 ** 32))
  view.setUint32(2, millis % 2 ** 32)
  for (let group = 0; group < 2; group++) {
    const [start, at] = [10 + 8 * group, 6 + 5 * group]
    const high = numberIn(text, start, start + 4)
    const low = numberIn(text, start + 4, start + 8)
    bytes[at] = high >> 12
    view.setUint32(at + 1, ((high & 0xfff) << 20) | low)
  }
  return bytes
}

/** Returns the number that at most ten characters encode. */
function numberIn(text: string, start: number, end: number): number {
  let number = 0
  for (let i = start; i < end; i++) number = number * 32 + ALPHABET.indexOf(text[i]!)
  return number
}

export function isUlid(text: string): boolean {
  return ULID.test(text)
}

/** Returns the creation time of an identifier, in Unix milliseconds. */
export function idMillis(id: string): number {
  const start = id.lastIndexOf('_') + 1
  return numberIn(id, start, start + 10)
}

export function isId<P extends IdPrefix>(prefix: P, text: unknown): text is Id<P> {
  return (
    typeof text === 'string' &&
    text.length === prefix.length + 27 &&
    text.startsWith(`${prefix}_`) &&
    ULID.test(text.slice(prefix.length + 1))
  )
}

/** Pattern of the texts that `isId` accepts. */
export function idPattern(prefix: IdPrefix): RegExp {
  return new RegExp(`^${prefix}_${ULID.source.slice(1)}`)
}

/** Throws ValidationError unless `text` is a canonical identifier with this prefix. */
export function parseId<P extends IdPrefix>(prefix: P, text: string): Id<P> {
  if (!isId(prefix, text)) throw new ValidationError(`a canonical ${prefix}_ identifier`)
  return text
}

export function isTableName(text: string): boolean {
  return TABLE.test(text)
}

/** Returns the table of a document or file ID; null for a text that is not a canonical ID. */
export function tableOfId(text: string): string | null {
  const split = text.length - 27
  if (split < 1 || text[split] !== '_') return null
  const table = text.slice(0, split)
  return TABLE.test(table) && ULID.test(text.slice(split + 1)) ? table : null
}

/** Returns the table of a document ID that is known to be canonical. */
export function tableOfCanonicalId(id: string): string {
  return id.slice(0, -27)
}

/** Returns whether the ID belongs to the table, without allocating a substring. */
export function isOfTable(table: string, canonicalId: string): boolean {
  return canonicalId.length === table.length + 27 && canonicalId.startsWith(table)
}

/** A source of time and randomness; `system` implements it. */
export interface IdSource {
  nowMillis(): number
  randomBytes(length: number): Uint8Array
}

/** Number of values of the last four characters. */
const TAIL_END = 2 ** 20

/**
 * Makes identifiers that ascend inside one process: in the same millisecond, or when the clock
 * goes back, the random part is incremented instead of redrawn.
 */
export class IdFactory {
  readonly #source: IdSource
  #lastMillis = -1
  #entropy = new Uint8Array(10)
  /** The first 22 characters. Most identifiers of a millisecond differ only in the last four. */
  #head = ''
  #tail = 0

  constructor(source: IdSource) {
    this.#source = source
  }

  make<P extends IdPrefix>(prefix: P): Id<P> {
    return `${prefix}_${this.ulid()}` as Id<P>
  }

  ulid(): string {
    const millis = this.#source.nowMillis()
    if (millis > this.#lastMillis) {
      this.#lastMillis = millis
      this.#entropy = Uint8Array.from(this.#source.randomBytes(10))
      this.#encodeHead()
    } else if (++this.#tail === TAIL_END) {
      this.#entropy.fill(255, 8)
      this.#entropy[7]! |= 15
      // 2^80 identifiers in one millisecond: move to the next one rather than wrap around.
      if (!increment(this.#entropy)) this.#lastMillis += 1
      this.#encodeHead()
    }
    return this.#head + PAIRS[this.#tail >> 10]! + PAIRS[this.#tail & 1023]!
  }

  #encodeHead(): void {
    const [high, middle, low] = this.#entropy.subarray(7)
    this.#head = encodeUlid(this.#lastMillis, this.#entropy).slice(0, 22)
    this.#tail = ((high! & 15) << 16) | (middle! << 8) | low!
  }
}

/** Adds one to a big-endian number; false when it wrapped to zero. */
function increment(bytes: Uint8Array): boolean {
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = (bytes[i]! + 1) & 255
    if (bytes[i] !== 0) return true
  }
  return false
}
