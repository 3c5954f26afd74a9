/**
 * A pattern as a nondeterministic automaton: all active instructions advance together, one code
 * point at a time. Counted repetitions are expanded, so that no instruction needs a counter.
 */
import { type CodePoints, hasCodePoint } from './code-points.ts'
import type { Pattern } from './syntax.ts'

/** Consumes a code point of `of`, asserts start or end of the text, branches, or matches. */
type Instruction =
  | { readonly kind: 'one'; readonly of: CodePoints; readonly next: number }
  | { readonly kind: 'start' | 'end'; readonly next: number }
  | { readonly kind: 'split'; readonly next: number; other: number }
  | { readonly kind: 'match' }

/** Instructions that wait for a code point or for the end, by number in ascending order. */
export type Threads = Int32Array

const MATCH = 0

export class Program {
  /** The sets of all instructions that consume a code point. */
  readonly sets = new Set<CodePoints>()
  /** Instructions visited so far: a measure of the cost. */
  steps = 0
  readonly #instructions: Instruction[] = [{ kind: 'match' }]
  readonly #entry: number
  /** Number of the step in which each instruction was last reached. */
  readonly #reached: Float64Array
  #walk = 0
  /** Instructions of the current step that are not followed yet, and those that wait for input. */
  readonly #pending: Int32Array
  #pendingCount = 0
  readonly #waiting: Int32Array

  constructor(pattern: Pattern) {
    this.#entry = this.#build(pattern, MATCH)
    const { length } = this.#instructions
    this.#reached = new Float64Array(length)
    this.#pending = new Int32Array(length)
    this.#waiting = new Int32Array(length)
  }

  start(): Threads {
    this.#begin()
    this.#reach(this.#entry)
    return this.#followEmpty({ atStart: true, atEnd: false })
  }

  step(threads: Threads, point: number): Threads {
    this.#begin()
    for (const thread of threads) {
      const each = this.#instructions[thread]!
      if (each.kind === 'one' && hasCodePoint(each.of, point)) this.#reach(each.next)
    }
    this.steps += threads.length
    return this.#followEmpty({ atStart: false, atEnd: false })
  }

  /** Returns whether the text may end here. */
  accepts(threads: Threads, atStart: boolean): boolean {
    this.#begin()
    for (const thread of threads) this.#reach(thread)
    return this.#followEmpty({ atStart, atEnd: true }).includes(MATCH)
  }

  #begin(): void {
    this.#walk += 1
    this.#pendingCount = 0
  }

  /** Visits each instruction once for each step, which keeps the time linear. */
  #reach(instruction: number): void {
    if (this.#reached[instruction] === this.#walk) return
    this.#reached[instruction] = this.#walk
    this.#pending[this.#pendingCount++] = instruction
  }

  /** Follows instructions that consume nothing. Returns the waiting instructions behind them. */
  #followEmpty({ atStart, atEnd }: Readonly<Record<'atStart' | 'atEnd', boolean>>): Threads {
    let waiting = 0
    while (this.#pendingCount > 0) {
      const at = this.#pending[--this.#pendingCount]!
      const each = this.#instructions[at]!
      this.steps += 1
      if (each.kind === 'split') {
        this.#reach(each.next)
        this.#reach(each.other)
      } else if ((each.kind === 'start' && atStart) || (each.kind === 'end' && atEnd)) {
        this.#reach(each.next)
      } else if (each.kind !== 'start') this.#waiting[waiting++] = at
    }
    return this.#waiting.slice(0, waiting).sort()
  }

  /** Returns the first instruction of the pattern, which continues at `next`. */
  #build(pattern: Pattern, next: number): number {
    switch (pattern.kind) {
      case 'one':
        this.sets.add(pattern.of)
        return this.#add({ kind: 'one', of: pattern.of, next })
      case 'start':
      case 'end':
        return this.#add({ kind: pattern.kind, next })
      case 'sequence':
        return pattern.parts.reduceRight((after, part) => this.#build(part, after), next)
      case 'choice': {
        const [first, ...others] = pattern.parts.map((part) => this.#build(part, next))
        return others.reduce((other, each) => this.#split(each, other), first!)
      }
      case 'repeat':
        return this.#repeat(pattern, next)
    }
  }

  #repeat({ part, least, most }: Extract<Pattern, { kind: 'repeat' }>, next: number): number {
    let entry = next
    let copies = least
    if (most === null) {
      // The last copy leads back to a choice between itself and what follows.
      const loop = { kind: 'split' as const, next, other: next }
      const again = this.#add(loop)
      loop.other = this.#build(part, again)
      entry = least === 0 ? again : loop.other
      copies = Math.max(0, least - 1)
    } else {
      for (let i = least; i < most; i++) entry = this.#split(this.#build(part, entry), next)
    }
    for (let i = 0; i < copies; i++) entry = this.#build(part, entry)
    return entry
  }

  #split(next: number, other: number): number {
    return this.#add({ kind: 'split', next, other })
  }

  #add(instruction: Instruction): number {
    return this.#instructions.push(instruction) - 1
  }
}
