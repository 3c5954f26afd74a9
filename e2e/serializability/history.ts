/**
 * What the clients of a run asked and were answered: the history that the checker and the oracle
 * judge. Lists and registers have keys of their own; every element and every value is written by
 * at most one operation of a history, so that a read tells whose write it saw.
 */

export type Operation =
  /** Answers the new length. */
  | { readonly kind: 'append'; readonly key: number; readonly element: number }
  /** Answers the elements. */
  | { readonly kind: 'list'; readonly key: number }
  /** Answers the value before, or nothing. */
  | {
      readonly kind: 'write'
      readonly key: number
      readonly value: number
      readonly how: 'patch' | 'replace' | 'reinsert'
    }
  /** Answers the value, or nothing. */
  | { readonly kind: 'read'; readonly key: number }
  /**
   * Answers key and value of the registers of one space, one behind the other, whose value is at
   * least `from` and less than `to`: the first `limit` of them in the order of their values.
   */
  | {
      readonly kind: 'range'
      readonly space: number
      readonly from: number
      readonly to: number
      readonly order: 'asc' | 'desc'
      readonly limit: number
    }

/** Null where the operation's answer was not recorded. */
export type Answer = readonly number[] | null

export interface Transaction {
  /** Its place in the workload. */
  readonly number: number
  readonly client: number
  readonly kind: 'query' | 'mutation'
  readonly operations: readonly Operation[]
  /** One for each operation; null where the transaction was not answered with a success. */
  readonly answers: readonly Answer[] | null
  readonly outcome: 'committed' | 'aborted' | 'unknown'
  /**
   * Moments of the driver, counted: whatever completed at a smaller number than another was
   * invoked at was answered before the other was sent.
   */
  readonly invoked: number
  /** Infinity where the outcome is unknown. */
  readonly completed: number
  /** Null where it wrote nothing, was a Query or did not commit. */
  readonly commitSequence: number | null
  /** Of a Query. */
  readonly snapshotSequence: number | null
  /** Runs until the commit; 1 for a Query. */
  readonly attempts: number
}

export type History = readonly Transaction[]

const REGISTERS_A_SPACE = 1_000

/** Registers below this number are documents that are read by ID; no range reads them. */
export const CELLS = 8

export function registerKey(space: number, place: number): number {
  return space * REGISTERS_A_SPACE + place
}

export function spaceOf(key: number): number {
  return Math.floor(key / REGISTERS_A_SPACE)
}

export function isWrite({ kind }: Operation): boolean {
  return kind === 'append' || kind === 'write'
}

export function describe({ number, client, kind, ...rest }: Transaction): string {
  const { operations, answers, outcome, commitSequence, snapshotSequence } = rest
  const parts = operations.map((operation, i) => {
    const answer = answers?.[i]
    const said = answer === undefined || answer === null ? '?' : `[${answer.join(', ')}]`
    return `${describeOperation(operation)} = ${said}`
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
