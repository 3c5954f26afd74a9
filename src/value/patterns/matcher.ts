/**
 * Matches a whole text against a pattern, in time linear in the text for every pattern. The states
 * of a deterministic automaton are created when a text first reaches them, and cached up to a
 * bound.
 */
import { CodePointClasses } from './code-point-classes.ts'
import { Program, type Threads } from './program.ts'
import { parsePattern } from './syntax.ts'

/** Cells of cached states, about 512 KiB. The cache is cleared when it is full. */
const CELLS_MAX = 65_536

interface State {
  readonly threads: Threads
  /** Next state by class of code point; undefined until a text reaches it. */
  readonly next: (State | undefined)[]
  readonly atStart: boolean
  /** Null until a text ends in this state. */
  accepts: boolean | null
}

/** Builds the matcher on first use, since most patterns of a Release are never used. */
export function matches(pattern: string): (text: string) => boolean {
  let matcher: Matcher | null = null
  return (text) => {
    matcher ??= new Matcher(pattern)
    return matcher.matches(text)
  }
}

export class Matcher {
  readonly #program: Program
  readonly #classes: CodePointClasses
  #start: State
  readonly #states = new Map<string, State>()
  #cells = 0

  /** Throws PatternError. */
  constructor(pattern: string) {
    this.#program = new Program(parsePattern(pattern))
    this.#classes = new CodePointClasses(this.#program.sets)
    this.#start = this.#first()
  }

  /** Instructions visited so far, and cells of the cached states. */
  get cost(): { readonly steps: number; readonly cells: number } {
    return { steps: this.#program.steps, cells: this.#cells }
  }

  matches(text: string): boolean {
    let state = this.#start
    for (let i = 0; i < text.length; i++) {
      const point = text.codePointAt(i)!
      if (point > 0xffff) i += 1
      const kind = this.#classes.of(point)
      state = state.next[kind] ?? this.#follow(state, kind, point)
      if (state.threads.length === 0) return false
    }
    state.accepts ??= this.#program.accepts(state.threads, state.atStart)
    return state.accepts
  }

  #first(): State {
    const threads = this.#program.start()
    return { threads, next: this.#row(), atStart: true, accepts: null }
  }

  #follow(from: State, kind: number, point: number): State {
    const threads = this.#program.step(from.threads, point)
    // `apply` avoids spreading the array, which would add a third to the time of a step.
    const name = String.fromCharCode.apply(null, threads as unknown as number[])
    const known = this.#states.get(name)
    if (known !== undefined) {
      from.next[kind] = known
      return known
    }
    const state: State = { threads, next: this.#row(), atStart: false, accepts: null }
    const cells = 2 * threads.length + this.#classes.count
    if (this.#cells + cells > CELLS_MAX) this.#forget()
    else from.next[kind] = state
    this.#cells += cells
    this.#states.set(name, state)
    return state
  }

  #row(): (State | undefined)[] {
    return new Array<State | undefined>(this.#classes.count).fill(undefined)
  }

  /** Clears the cache. States reference each other, so none can be kept. */
  #forget(): void {
    this.#states.clear()
    this.#cells = 0
    this.#start = this.#first()
  }
}
