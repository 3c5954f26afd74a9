/**
 * Finds keys that stand more than once in an object whose members are read one by one. Fingerprints
 * of all keys are kept, those beyond a bound in files of a temporary directory; the few that are
 * equal are compared by their keys in a second reading.
 */
import { hash } from 'node:crypto'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withPath } from '../../files.ts'

/** Bytes of a fingerprint. */
const LENGTH = 8
/** Fingerprints in memory, 8 MiB. */
const PENDING_MAX = 1024 * 1024
/** Each file has the fingerprints of one range: 8 MiB where there are 256 million keys. */
const FILES = 256
/** Equal fingerprints that are compared by their keys. One is enough to reject a document. */
const REPEATED_MAX = 1_000
const PRIVATE_FILE = 0o600

/** An object, by its number in the order of the document, and one of its keys. */
export interface KeyOfObject {
  readonly object: number
  readonly key: string
}

export class KeyFingerprints {
  readonly #pendingMax: number
  readonly #pending: BigUint64Array
  readonly #bytes: Uint8Array
  #count = 0
  /** Null while all fingerprints are in memory. */
  #directory: string | null = null
  readonly #repeated = new Set<bigint>()

  constructor(pendingMax = PENDING_MAX) {
    this.#pendingMax = pendingMax
    this.#pending = new BigUint64Array(pendingMax)
    this.#bytes = new Uint8Array(this.#pending.buffer)
  }

  add(key: KeyOfObject): void {
    if (this.#count === this.#pendingMax) this.#spill()
    this.#bytes.set(digestOf(key), this.#count * LENGTH)
    this.#count += 1
  }

  /** Returns the fingerprints that were added more than once, 1,000 at most. Call it last. */
  repeated(): ReadonlySet<bigint> {
    if (this.#directory === null) this.#note(this.#pending.subarray(0, this.#count).sort())
    else {
      this.#spill()
      for (let i = 0; i < FILES; i++) this.#note(this.#read(i).sort())
    }
    return this.#repeated
  }

  remove(): void {
    if (this.#directory !== null) rmSync(this.#directory, { recursive: true, force: true })
  }

  /** Notes what is repeated in sorted fingerprints. */
  #note(sorted: BigUint64Array): void {
    for (let i = 1; i < sorted.length && this.#repeated.size < REPEATED_MAX; i++) {
      if (sorted[i] === sorted[i - 1]) this.#repeated.add(sorted[i]!)
    }
  }

  #spill(): void {
    this.#directory ??= mkdtempSync(join(tmpdir(), 'svc-import-keys-'))
    const sorted = this.#pending.subarray(0, this.#count).sort()
    const perFile = 2n ** 64n / BigInt(FILES)
    for (let i = 0, from = 0; from < sorted.length; i++) {
      const end = firstFrom(sorted, BigInt(i + 1) * perFile, from)
      if (end === from) continue
      const path = this.#path(i)
      const bytes = this.#bytes.subarray(from * LENGTH, end * LENGTH)
      withPath(path, () => appendFileSync(path, bytes, { mode: PRIVATE_FILE }))
      from = end
    }
    this.#count = 0
  }

  #path(file: number): string {
    return join(this.#directory!, String(file))
  }

  #read(file: number): BigUint64Array {
    const path = this.#path(file)
    if (!existsSync(path)) return new BigUint64Array()
    const bytes = withPath(path, () => readFileSync(path))
    // A buffer of its own begins where 64 bits are aligned.
    return new BigUint64Array(new Uint8Array(bytes).buffer)
  }
}

/** Finds the keys whose fingerprints are repeated, in a second reading. */
export class RepeatedKeys {
  readonly #fingerprints: ReadonlySet<bigint>
  readonly #found = new Set<string>()

  constructor(fingerprints: ReadonlySet<bigint>) {
    this.#fingerprints = fingerprints
  }

  /** Returns whether the key was added before. */
  add(key: KeyOfObject): boolean {
    const [fingerprint] = new BigUint64Array(new Uint8Array(digestOf(key)).buffer)
    if (!this.#fingerprints.has(fingerprint!)) return false
    const text = textOf(key)
    if (this.#found.has(text)) return true
    this.#found.add(text)
    return false
  }
}

function textOf({ object, key }: KeyOfObject): string {
  return `${object} ${key}`
}

function digestOf(key: KeyOfObject): Uint8Array {
  return hash('sha256', textOf(key), 'buffer').subarray(0, LENGTH)
}

/** Returns the index of the first fingerprint from `least` on, at or after `from`. */
function firstFrom(sorted: BigUint64Array, least: bigint, from: number): number {
  let low = from
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sorted[middle]! < least) low = middle + 1
    else high = middle
  }
  return low
}
