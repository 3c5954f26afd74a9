/** The fewest classes of code points that a pattern distinguishes, so that state rows are short. */
import type { CodePoints } from './code-points.ts'

const ASCII = 128

export class CodePointClasses {
  /** Number of classes, which are numbered from 0. */
  readonly count: number
  /** First code point of each interval, ascending from 0, and the class of the interval. */
  readonly #starts: Int32Array
  readonly #classes: Int32Array
  readonly #ascii = new Int32Array(ASCII)

  constructor(sets: ReadonlySet<CodePoints>) {
    const borders = [...sets].flatMap((set) => set.flatMap(({ first, last }) => [first, last + 1]))
    this.#starts = Int32Array.from(new Set([0, ...borders])).sort()
    this.#classes = new Int32Array(this.#starts.length)
    let used = 1
    for (const set of sets) used = this.#part(set, used)
    const numbers = new Map<number, number>()
    this.#classes.forEach((each, i) => {
      if (!numbers.has(each)) numbers.set(each, numbers.size)
      this.#classes[i] = numbers.get(each)!
    })
    this.count = numbers.size
    for (let point = 0; point < ASCII; point++) this.#ascii[point] = this.#search(point)
  }

  of(point: number): number {
    return point < ASCII ? this.#ascii[point]! : this.#search(point)
  }

  /** Splits classes by the set: its code points get new classes, numbered from `used`. */
  #part(set: CodePoints, used: number): number {
    const parts = new Map<number, number>()
    for (const { first, last } of set) {
      for (let i = this.#interval(first); (this.#starts[i] ?? last + 1) <= last; i++) {
        const whole = this.#classes[i]!
        if (!parts.has(whole)) parts.set(whole, used + parts.size)
        this.#classes[i] = parts.get(whole)!
      }
    }
    return used + parts.size
  }

  #search(point: number): number {
    return this.#classes[this.#interval(point)]!
  }

  /** Returns the last interval that begins at or before the code point. */
  #interval(point: number): number {
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#starts[middle]! <= point) low = middle
      else high = middle - 1
    }
    return low
  }
}
