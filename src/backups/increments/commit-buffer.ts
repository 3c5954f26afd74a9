/** The durable transactions that the increments do not have yet, in bounded memory. */
import type { TransactionWrite } from '../../documents/store.ts'

interface Entry {
  readonly transaction: TransactionWrite
  readonly bytes: number
  /** Monotonic time at which it became durable. */
  readonly millis: number
}

/** Approximate bytes of the objects of a transaction, a write and an entry of an index. */
const TRANSACTION_BYTES = 512
const WRITE_BYTES = 256
const ENTRY_BYTES = 64

export class CommitBuffer {
  readonly #bytesMax: number
  readonly #system: { monotonicMillis(): number }
  #entries: Entry[] = []
  #bytes = 0
  /** The time at which the oldest lost transaction became durable; null if none was lost. */
  #lostMillis: number | null = null

  constructor(bytesMax: number, system: { monotonicMillis(): number }) {
    this.#bytesMax = bytesMax
    this.#system = system
  }

  /** Approximate bytes of memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns whether transactions were lost: the buffer stays empty until `restart`. */
  get hasLost(): boolean {
    return this.#lostMillis !== null
  }

  /** The time at which the oldest transaction that no increment has became durable, or null. */
  get oldestMillis(): number | null {
    return this.#lostMillis ?? this.#entries[0]?.millis ?? null
  }

  get size(): number {
    return this.#entries.length
  }

  add(transactions: readonly TransactionWrite[]): void {
    if (this.hasLost) return
    const millis = this.#system.monotonicMillis()
    for (const transaction of transactions) {
      const bytes = bytesOf(transaction)
      this.#bytes += bytes
      this.#entries.push({ transaction, bytes, millis })
    }
    if (this.#bytes > this.#bytesMax) this.lose()
  }

  /** Drops everything up to the next `restart`. */
  lose(): void {
    this.#lostMillis = this.oldestMillis ?? this.#system.monotonicMillis()
    this.#clear()
  }

  /** Takes transactions from now on. */
  restart(): void {
    this.#lostMillis = null
    this.#clear()
  }

  /** Returns the transactions from an index on, without those that are added later. */
  from(index: number): readonly TransactionWrite[] {
    return this.#entries.slice(index).map(({ transaction }) => transaction)
  }

  /** Drops the oldest transactions, which an increment has. */
  drop(count: number): void {
    for (const { bytes } of this.#entries.splice(0, count)) this.#bytes -= bytes
  }

  /** Drops the transactions up to a sequence, and keeps operations that wrote nothing. */
  dropUpTo(sequence: number): void {
    const kept = this.#entries.filter(
      ({ transaction }) => transaction.sequence === null || transaction.sequence > sequence,
    )
    this.#entries = kept
    this.#bytes = kept.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  #clear(): void {
    this.#entries = []
    this.#bytes = 0
  }
}

function bytesOf({ writes, operation }: TransactionWrite): number {
  let bytes = TRANSACTION_BYTES + (operation?.result.length ?? 0)
  for (const { text, entries } of writes) {
    bytes += WRITE_BYTES + (text?.length ?? 0)
    for (const { key } of entries) bytes += ENTRY_BYTES + key.length
  }
  return bytes
}
