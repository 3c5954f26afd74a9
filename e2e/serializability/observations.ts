/**
 * Collects what each committed transaction read of others: its answers without its own writes. A
 * transaction that contradicts its own writes is reported here.
 */
import type { Anomaly } from './anomalies.ts'
import { type History, type Operation, spaceOf, type Transaction } from './history.ts'

/** `by` is the index of the reader in the history. */
export interface ListRead {
  readonly by: number
  readonly key: number
  readonly elements: readonly number[]
}

export interface RegisterRead {
  readonly by: number
  readonly key: number
  /** Null if the register did not exist. */
  readonly value: number | null
}

export interface RangeRead {
  readonly by: number
  readonly space: number
  /** Bounds of the examined part: a limit ends it at the last row. */
  readonly from: number
  readonly to: number
  /** Keys that the transaction read or wrote itself. Their absence has no meaning. */
  readonly known: ReadonlySet<number>
}

export interface Write {
  readonly by: number
  readonly key: number
  /** The element or value. */
  readonly value: number
  /** False if the transaction wrote the register, or appended to the list, again later. */
  isLast: boolean
  /** The value that a write replaced, null for none; absent if it is unknown. */
  readonly before?: number | null
}

export interface Observations {
  readonly lists: ListRead[]
  readonly registers: RegisterRead[]
  readonly ranges: RangeRead[]
  /** Writes of all transactions, by element and by value. */
  readonly appends: Map<number, Write>
  readonly writes: Map<number, Write>
  readonly anomalies: Anomaly[]
}

export function observe(history: History): Observations {
  const found: Observations = {
    lists: [],
    registers: [],
    ranges: [],
    appends: new Map(),
    writes: new Map(),
    anomalies: [],
  }
  for (const [by, transaction] of history.entries()) new Observer(by, transaction, found).run()
  return found
}

class Observer {
  readonly #by: number
  readonly #transaction: Transaction
  readonly #found: Observations
  readonly #appended = new Map<number, Write[]>()
  readonly #written = new Map<number, Write>()
  /** The value of each register that the transaction read before it wrote it. */
  readonly #seen = new Map<number, number | null>()

  constructor(by: number, transaction: Transaction, found: Observations) {
    this.#by = by
    this.#transaction = transaction
    this.#found = found
  }

  run(): void {
    const { operations, answers, outcome } = this.#transaction
    for (const [i, operation] of operations.entries()) {
      const answer = (outcome === 'committed' && answers?.[i]) || null
      if (answer !== null) this.#read(operation, answer)
      if (operation.kind === 'append') this.#append(operation.key, operation.element)
      if (operation.kind === 'write') this.#write(operation.key, operation.value)
    }
  }

  /** The length after an append is redundant: it follows from the elements. */
  #read(operation: Operation, answer: readonly number[]): void {
    if (operation.kind === 'list') this.#readList(operation.key, answer)
    else if (operation.kind === 'range') this.#readRange(operation, answer)
    else if (operation.kind !== 'append') this.#readRegister(operation.key, answer[0] ?? null)
  }

  #readList(key: number, elements: readonly number[]): void {
    const own = this.#appended.get(key) ?? []
    const others = elements.length - own.length
    if (own.some(({ value }, i) => elements[others + i] !== value)) {
      this.#report(`list ${key} does not end with what it appended`)
      return
    }
    this.#found.lists.push({ by: this.#by, key, elements: elements.slice(0, others) })
  }

  #readRegister(key: number, value: number | null): void {
    const own = this.#written.get(key)
    if (own !== undefined) {
      if (own.value !== value) this.#report(`register ${key} is not what it wrote`)
      return
    }
    this.#seen.set(key, value)
    this.#found.registers.push({ by: this.#by, key, value })
  }

  #readRange(operation: Operation & { kind: 'range' }, answer: readonly number[]): void {
    const { space, order, limit } = operation
    let { from, to } = operation
    const rows = new Map<number, number>()
    for (let i = 0; i < answer.length; i += 2) rows.set(answer[i]!, answer[i + 1]!)
    if (rows.size === limit) {
      const last = answer.at(-1)!
      if (order === 'asc') to = last + 1
      else from = last
    }
    const isInside = (value: number) => value >= from && value < to
    for (const [key, own] of this.#written) {
      const shown = rows.get(key)
      const expected = spaceOf(key) === space && isInside(own.value) ? own.value : undefined
      if (shown !== expected) this.#report(`the range shows register ${key} as it did not write it`)
    }
    for (const [key, value] of rows) {
      if (!isInside(value) || spaceOf(key) !== space) {
        this.#report(`the range shows register ${key} from outside of it`)
      }
      if (this.#written.has(key)) continue
      this.#seen.set(key, value)
      this.#found.registers.push({ by: this.#by, key, value })
    }
    const known = new Set([...rows.keys(), ...this.#written.keys()])
    this.#found.ranges.push({ by: this.#by, space, from, to, known })
  }

  #append(key: number, element: number): void {
    const own = this.#appended.get(key) ?? []
    for (const earlier of own) earlier.isLast = false
    const write: Write = { by: this.#by, key, value: element, isLast: true }
    this.#appended.set(key, [...own, write])
    this.#found.appends.set(element, write)
  }

  #write(key: number, value: number): void {
    const own = this.#written.get(key)
    if (own !== undefined) own.isLast = false
    const before = own?.value ?? this.#seen.get(key)
    const known = before === undefined ? {} : { before }
    const write: Write = { by: this.#by, key, value, isLast: true, ...known }
    this.#written.set(key, write)
    this.#found.writes.set(value, write)
  }

  #report(what: string): void {
    const { number } = this.#transaction
    this.#found.anomalies.push({
      kind: 'internal',
      text: `T${number}: ${what}`,
      transactions: [number],
    })
  }
}
