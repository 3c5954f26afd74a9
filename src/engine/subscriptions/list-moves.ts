/** The moves that bring the entries of a list into another order, as few as possible. */

/** A move takes an entry out of the list and puts it where its index is `to` afterwards. */
export interface Move {
  /** The position of the entry before all moves. */
  readonly position: number
  readonly to: number
}

/**
 * Returns the indexes of a longest increasing subsequence of distinct numbers (patience sorting),
 * in n log n steps: the entries that stay while all others move around them.
 */
export function longestIncreasing(numbers: readonly number[]): ReadonlySet<number> {
  /** The index of the smallest number that ends such a subsequence, for each length. */
  const ends: number[] = []
  const previous: number[] = []
  for (const [i, number] of numbers.entries()) {
    let [low, high] = [0, ends.length]
    // Most orders hardly change, so the end is tried first.
    if (high > 0 && numbers[ends[high - 1]!]! < number) low = high
    while (low < high) {
      const middle = (low + high) >> 1
      if (numbers[ends[middle]!]! < number) low = middle + 1
      else high = middle
    }
    previous.push(low === 0 ? -1 : ends[low - 1]!)
    ends[low] = i
  }
  const chosen = new Set<number>()
  for (let i = ends.at(-1) ?? -1; i >= 0; i = previous[i]!) chosen.add(i)
  return chosen
}

/**
 * Returns the moves to the order, which names the position of each entry before them. The entries
 * at the indexes `fixed` of the order stay; their positions must increase.
 */
export function* movesTo(order: readonly number[], fixed: ReadonlySet<number>): Generator<Move> {
  const waiting = new PrefixCounts(order.length)
  for (const [i, position] of order.entries()) if (!fixed.has(i)) waiting.add(position, 1)
  /** The last entry before the place of the move that stays. */
  let anchor = -1
  for (const [i, position] of order.entries()) {
    if (fixed.has(i)) anchor = position
    else {
      waiting.add(position, -1)
      // Before it are the entries that are in order, and those that still have to move away.
      yield { position, to: i + (anchor < 0 ? 0 : waiting.below(anchor)) }
    }
  }
}

/** Counts of numbers below a bound, which changes and answers in log n steps (a Fenwick tree). */
class PrefixCounts {
  readonly #sums: Int32Array

  constructor(size: number) {
    this.#sums = new Int32Array(size + 1)
  }

  add(number: number, change: number): void {
    for (let i = number + 1; i < this.#sums.length; i += i & -i) this.#sums[i]! += change
  }

  below(bound: number): number {
    let sum = 0
    for (let i = bound; i > 0; i -= i & -i) sum += this.#sums[i]!
    return sum
  }
}
