/**
 * Creates the transactions of a run, each from the seed and its number alone. Every epoch has its
 * own few keys, so that many clients contend for them and no list grows without a bound.
 */
import { CELLS, isWrite, type Operation, registerKey } from './history.ts'
import { SeededRandom } from './random.ts'

export interface Planned {
  readonly number: number
  readonly kind: 'query' | 'mutation'
  /** True if a Query runs its operations concurrently, false if one after the other. */
  readonly together: boolean
  readonly operations: readonly Operation[]
  /** True if the Function fails after its last operation. */
  readonly aborts: boolean
  /** The time at which the client repeats a Mutation that needs no retry. */
  readonly repeat: 'never' | 'at once' | 'when answered'
}

/** Number of transactions per epoch. */
export const EPOCH = 128
const KEYS_MIN = 3
const KEYS_MAX = 8
const OPERATIONS_MAX = 6
/** Values of a register are spread over the range, independent of their order in time. */
const BUCKETS = 8
const BUCKET_SIZE = 2 ** 40
const LIMITS = [1, 2, 3, 5, 100]
const MANY = 1_000
const REPEATS = ['at once', 'when answered'] as const
/** The fields of a Query besides its operations. */
const QUERY = { kind: 'query', together: false, aborts: false, repeat: 'never' } as const

export function planned(seed: number, number: number): Planned {
  const random = new SeededRandom(seed, number)
  const draw = new Draw(random, { seed, number, epoch: epochOf(number) })
  const kind = random.chance(0.35) ? 'query' : 'mutation'
  // Some Queries are repeated often, so that their results come from the cache.
  if (kind === 'query' && random.chance(0.4)) {
    return { ...QUERY, number, operations: [draw.popular()] }
  }
  const operations = Array.from({ length: 1 + random.below(OPERATIONS_MAX) }, (_, i) =>
    kind === 'query' || random.chance(0.4) ? draw.read() : draw.write(i),
  )
  if (kind === 'query') return { ...QUERY, number, together: random.chance(0.5), operations }
  const aborts = operations.some(isWrite) && random.chance(0.05)
  const repeat = random.chance(0.06) ? random.pick(REPEATS) : 'never'
  return { number, kind, together: false, operations, aborts, repeat }
}

/** Reads everything that an epoch wrote, so that every loss is found. */
export function finalReads(seed: number, number: number, epoch: number): Planned {
  const keys = Array.from({ length: keysOf(seed, epoch) }, (_, i) => i)
  const operations = [
    ...keys.map((i): Operation => ({ kind: 'list', key: listKey(epoch, i) })),
    wholeSpace(epoch),
    ...Array.from({ length: CELLS }, (_, key): Operation => ({ kind: 'read', key })),
  ]
  return { ...QUERY, number, operations }
}

export function epochOf(number: number): number {
  return 1 + Math.floor(number / EPOCH)
}

/** Returns a number from 3 to 8. */
function keysOf(seed: number, epoch: number): number {
  return KEYS_MIN + new SeededRandom(~seed, epoch).below(KEYS_MAX - KEYS_MIN + 1)
}

function listKey(epoch: number, i: number): number {
  return epoch * KEYS_MAX + i
}

function wholeSpace(space: number): Operation {
  return { kind: 'range', space, from: 0, to: BUCKETS * BUCKET_SIZE, order: 'asc', limit: MANY }
}

class Draw {
  readonly #random: SeededRandom
  readonly #keys: number
  readonly #epoch: number
  readonly #number: number

  constructor(random: SeededRandom, at: { seed: number; number: number; epoch: number }) {
    this.#random = random
    this.#keys = keysOf(at.seed, at.epoch)
    this.#epoch = at.epoch
    this.#number = at.number
  }

  read(): Operation {
    const choice = this.#random.below(100)
    if (choice < 40) return { kind: 'list', key: this.#listKey() }
    if (choice < 70) return { kind: 'read', key: this.#registerKey() }
    return this.#range()
  }

  /** Returns one of the few reads that many clients repeat. */
  popular(): Operation {
    const epoch = this.#epoch
    return this.#random.pick<Operation>([
      { kind: 'list', key: listKey(epoch, 0) },
      { kind: 'list', key: listKey(epoch, 1) },
      { kind: 'read', key: registerKey(epoch, 0) },
      { kind: 'read', key: 0 },
      wholeSpace(epoch),
    ])
  }

  write(i: number): Operation {
    // Unique in the run: a transaction has at most 8 operations.
    const unique = this.#number * 8 + i + 1
    const choice = this.#random.below(100)
    if (choice < 50) return { kind: 'append', key: this.#listKey(), element: unique }
    const value = this.#random.below(BUCKETS) * BUCKET_SIZE + unique
    const how = this.#random.pick(['patch', 'replace', 'reinsert'] as const)
    // A register that no other transaction writes. It appears in ranges of others.
    const isNew = choice >= 85
    const index = KEYS_MAX + (this.#number % EPOCH)
    const key = isNew ? registerKey(this.#epoch, index) : this.#registerKey()
    return { kind: 'write', key, value, how }
  }

  #range(): Operation {
    const order = this.#random.pick(['asc', 'desc'] as const)
    const limit = this.#random.pick(LIMITS)
    const from = this.#random.below(BUCKETS)
    const to = from + 1 + this.#random.below(BUCKETS - from)
    const bounds = { from: from * BUCKET_SIZE, to: to * BUCKET_SIZE }
    return { kind: 'range', space: this.#epoch, ...bounds, order, limit }
  }

  #listKey(): number {
    return listKey(this.#epoch, this.#random.below(this.#keys))
  }

  #registerKey(): number {
    return this.#random.chance(0.25)
      ? this.#random.below(CELLS)
      : registerKey(this.#epoch, this.#random.below(this.#keys))
  }
}
