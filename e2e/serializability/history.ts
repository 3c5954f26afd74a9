/**
 * The requests and replies of the clients of a run: the history that the checker and the oracle
 * verify. Lists and registers have separate keys. Every element and every value is written by at
 * most one operation of a history, so that a read identifies its writer.
 */

export type Operation =
  /** Returns the new length. */
  | { readonly kind: 'append'; readonly key: number; readonly element: number }
  /** Returns the elements. */
  | { readonly kind: 'list'; readonly key: number }
  /** Returns the previous value, or nothing. */
  | {
      readonly kind: 'write'
      readonly key: number
      readonly value: number
      readonly how: 'patch' | 'replace' | 'reinsert'
    }
  /** Returns the value, or nothing. */
  | { readonly kind: 'read'; readonly key: number }
  /**
   * Returns key and value of the registers of one space whose value is at least `from` and less
   * than `to`, in one flat list: the first `limit` of them in the order of their values.
   */
  | {
      readonly kind: 'range'
      readonly space: number
      readonly from: number
      readonly to: number
      readonly order: 'asc' | 'desc'
      readonly limit: number
    }

/** Null if the result of the operation was not recorded. */
export type Answer = readonly number[] | null

export interface Transaction {
  /** Position of the transaction in the workload. */
  readonly number: number
  readonly client: number
  readonly kind: 'query' | 'mutation'
  readonly operations: readonly Operation[]
  /** One answer for each operation; null unless the transaction succeeded. */
  readonly answers: readonly Answer[] | null
  readonly outcome: 'committed' | 'aborted' | 'unknown'
  /**
   * Logical times of the driver. A transaction that completed at a smaller number than another was
   * invoked at had its reply before the other was sent.
   */
  readonly invoked: number
  /** Infinity if the outcome is unknown. */
  readonly completed: number
  /** Null if it wrote nothing, is a Query or did not commit. */
  readonly commitSequence: number | null
  /** Snapshot of a Query. */
  readonly snapshotSequence: number | null
  /** Number of attempts until the commit; 1 for a Query. */
  readonly attempts: number
}

export type History = readonly Transaction[]

const REGISTERS_PER_SPACE = 1_000

/** Registers with keys below this number are documents that are read by ID, never by ranges. */
export const CELLS = 8

export function registerKey(space: number, index: number): number {
  return space * REGISTERS_PER_SPACE + index
}

export function spaceOf(key: number): number {
  return Math.floor(key / REGISTERS_PER_SPACE)
}

export function isWrite({ kind }: Operation): boolean {
  return kind === 'append' || kind === 'write'
}

export function describe({ number, client, kind, ...rest }: Transaction): string {
  const { operations, answers, outcome, commitSequence, snapshotSequence } = rest
  const parts = operations.map((operation, i) => {
    const answer = answers?.[i]
    const shown = answer === undefined || answer === null ? '?' : `[${answer.join(', ')}]`
    return `${describeOperation(operation)} = ${shown}`
  })
  const sequence =
    commitSequence !== null
      ? ` at ${commitSequence}`
      : snapshotSequence !== null
        ? ` of ${snapshotSequence}`
        : ''
  return `T${number} (client ${client}, ${kind}, ${outcome}${sequence}): ${parts.join('; ')}`
}

function describeOperation(operation: Operation): string {
  switch (operation.kind) {
    case 'append':
      return `append ${operation.element} to list ${operation.key}`
    case 'list':
      return `list ${operation.key}`
    case 'write':
      return `write ${operation.value} to register ${operation.key}`
    case 'read':
      return `register ${operation.key}`
    case 'range': {
      const { space, from, to, order, limit } = operation
      return `range ${from}..${to} of space ${space} (${order}, ${limit})`
    }
  }
}
