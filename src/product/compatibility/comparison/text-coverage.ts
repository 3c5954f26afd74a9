/**
 * Strings that one schema accepts and another one rejects. Patterns are compared as automata: all
 * advance together through the strings in the order of their lengths, until one is found, or no
 * other state can be reached, or too many were.
 */
import type { CodePoints } from '../../../value/patterns/code-points.ts'
import { hasCodePoint } from '../../../value/patterns/code-points.ts'
import { Program, type Threads } from '../../../value/patterns/program.ts'
import { parsePattern } from '../../../value/patterns/syntax.ts'
import { codePoints } from '../../../value/validators.ts'
import { firstUncovered, LENGTHS } from './intervals.ts'
import type { StepBudget } from './steps.ts'
import type { ValidatorOf } from './value-kinds.ts'

type TextJson = ValidatorOf<'string'>

export interface ReadTexts {
  readonly texts: readonly TextJson[]
  readonly literals: ReadonlySet<string>
}

/** A text that is rejected; null if it is too long, or not certain to exist. */
export type Uncovered = { readonly text: string | null }

/** Maximum number of states of one search. */
const STATES_MAX = 2_000
/** Maximum number of code points of a text of a search. */
const SEARCH_LENGTH_MAX = 256
/** Maximum number of code points of a text that is made to be too long. */
const TEXT_LENGTH_MAX = 100_000
/** Classes of code points in which a search looks. */
const ALPHABET_MAX = 64
/** Steps of compiling the automaton of a pattern. */
const PATTERN_STEPS = 5_000
/** Patterns of a reader that one search follows. */
const PATTERNS_MAX = 8
/** Steps of one character that a pattern reads, which takes up to 25 us. */
const PATTERN_CHARACTER_STEPS = 100
/** Characters of a literal that cost one step when they are compared or counted. */
const STEP_CHARACTERS = 64

export class TextCoverage {
  readonly #budget: StepBudget
  readonly #programs = new Map<string, Program>()

  constructor(budget: StepBudget) {
    this.#budget = budget
  }

  /** Returns null if each text that `written` accepts is read. */
  uncovered(written: TextJson, read: ReadTexts): Uncovered | null {
    if (read.texts.some((each) => this.#includes(each, written))) return null
    const isPlain = [written, ...read.texts].every(({ pattern }) => pattern === undefined)
    if (isPlain) return this.#uncoveredLength(written, read)
    return this.#search(written, read)
  }

  /** Returns whether a reader accepts the text. */
  accepts({ texts, literals }: ReadTexts, text: string): boolean {
    this.#budget.spend(1 + text.length / STEP_CHARACTERS)
    return literals.has(text) || texts.some((each) => this.#acceptsText(each, text))
  }

  /** Returns a shortest text that the validator accepts; null if none was found. */
  shortest(written: TextJson): string | null {
    return this.uncovered(written, { texts: [], literals: new Set() })?.text ?? null
  }

  #acceptsText(json: TextJson, text: string): boolean {
    this.#budget.spend(1 + text.length / STEP_CHARACTERS)
    if (!isLength(json, codePoints(text, text.length))) return false
    if (json.pattern === undefined) return true
    this.#budget.spend(text.length * PATTERN_CHARACTER_STEPS)
    const program = this.#program(json.pattern)
    let threads = program.start()
    for (const character of text) threads = program.step(threads, character.codePointAt(0)!)
    return program.accepts(threads, text === '')
  }

  /** Returns whether one validator accepts what the other does; false if that is not certain. */
  #includes(read: TextJson, written: TextJson): boolean {
    this.#budget.spend(1)
    const isWithin =
      (read.minimumLength ?? 0) <= (written.minimumLength ?? 0) &&
      (read.maximumLength ?? Infinity) >= (written.maximumLength ?? Infinity)
    if (!isWithin) return false
    if (read.pattern === undefined || read.pattern === written.pattern) return true
    const patternOf = ({ pattern }: TextJson): TextJson =>
      pattern === undefined ? { type: 'string' } : { type: 'string', pattern }
    const found = this.#search(patternOf(written), {
      texts: [patternOf(read)],
      literals: new Set(),
    })
    return found === null
  }

  #uncoveredLength(written: TextJson, { texts, literals }: ReadTexts): Uncovered | null {
    this.#budget.spend(texts.length)
    const covering = texts.map(lengthsOf)
    if (literals.has('')) covering.push({ minimum: 0, maximum: 0 })
    const length = firstUncovered(lengthsOf(written), covering, LENGTHS)
    if (length === null) return null
    if (length > TEXT_LENGTH_MAX) return { text: null }
    // A literal may be of this length too, and there are more texts of it than literals.
    for (let i = 0; ; i++) {
      const text = textOf(length, i)
      this.#budget.spend(1 + length / STEP_CHARACTERS)
      if (!literals.has(text)) return { text }
    }
  }

  #search(written: TextJson, { texts, literals }: ReadTexts): Uncovered | null {
    if (texts.length > PATTERNS_MAX) return { text: null }
    const all = [written, ...texts]
    const programs = all.map(({ pattern }) =>
      pattern === undefined ? null : this.#program(pattern),
    )
    const { alphabet, isWhole } = this.#alphabet(programs)
    // Lengths beyond all bounds are not distinguished.
    const bounds = all.flatMap((each) => [each.minimumLength ?? 0, each.maximumLength ?? 0])
    const depth = Math.max(...bounds) + 1
    let isCertain = isWhole && depth <= SEARCH_LENGTH_MAX
    const start: State = { text: '', length: 0, threads: programs.map((each) => each?.start()) }
    const seen = new Set<string>()
    /** States that a literal alone has reached: another text may reach them too. */
    const ofLiterals = new Set<string>()
    const queue: State[] = []
    const visit = (state: State): Uncovered | null => {
      const name = nameOf(state, depth)
      const isKnown = seen.has(name)
      if (isKnown && !ofLiterals.has(name)) return null
      if (this.#isUncovered(state, all, programs)) {
        if (!literals.has(state.text)) return { text: state.text }
        if (state.text !== '') ofLiterals.add(name)
      }
      if (isKnown) return null
      if (seen.size >= STATES_MAX) return { text: null }
      seen.add(name)
      queue.push(state)
      return null
    }
    const atStart = visit(start)
    if (atStart !== null) return atStart
    for (const state of queue) {
      if (state.length >= SEARCH_LENGTH_MAX) {
        isCertain = false
        continue
      }
      for (const character of alphabet) {
        const next = this.#follow(state, character, programs)
        const found = next === null ? null : visit(next)
        if (found !== null) return found
      }
    }
    isCertain &&= ofLiterals.size === 0
    return isCertain ? null : { text: null }
  }

  #isUncovered(
    { text, length, threads }: State,
    all: readonly TextJson[],
    programs: readonly (Program | null)[],
  ): boolean {
    const accepts = (i: number) => {
      this.#budget.spend(2 + (threads[i]?.length ?? 0))
      const program = programs[i]!
      if (!isLength(all[i]!, length)) return false
      return program === null || program.accepts(threads[i]!, text === '')
    }
    return accepts(0) && !all.some((_, i) => i > 0 && accepts(i))
  }

  /** Returns null if the writer accepts no text that begins like this. */
  #follow(state: State, character: string, programs: readonly (Program | null)[]): State | null {
    const point = character.codePointAt(0)!
    const threads: (Threads | undefined)[] = []
    for (const [i, program] of programs.entries()) {
      const before = program?.steps ?? 0
      threads.push(program?.step(state.threads[i]!, point))
      this.#budget.spend(2 + (program?.steps ?? 0) - before)
      if (i === 0 && threads[0]?.length === 0) return null
    }
    return { text: state.text + character, length: state.length + 1, threads }
  }

  #program(pattern: string): Program {
    let program = this.#programs.get(pattern)
    if (program === undefined) {
      this.#budget.spend(PATTERN_STEPS)
      program = new Program(parsePattern(pattern))
      this.#programs.set(pattern, program)
    }
    return program
  }

  /**
   * Returns up to two characters of each class of code points that the patterns distinguish.
   * `isWhole` is false if a class has none, because there are too many.
   */
  #alphabet(programs: readonly (Program | null)[]) {
    const sets = [...new Set(programs.flatMap((each) => [...(each?.sets ?? [])]))]
    const points = new Set(PREFERRED)
    for (const set of sets) {
      for (const { first, last } of set) points.add(first).add(last + 1)
    }
    const counts = new Map<string, number>()
    const alphabet: string[] = []
    let isWhole = true
    for (const point of points) {
      this.#budget.spend(1 + sets.length)
      if (!isCharacter(point)) continue
      const signature = signatureOf(sets, point)
      const count = counts.get(signature) ?? 0
      if (count === 2) continue
      if (alphabet.length === ALPHABET_MAX) {
        isWhole &&= count > 0
        continue
      }
      counts.set(signature, count + 1)
      alphabet.push(String.fromCodePoint(point))
    }
    return { alphabet, isWhole }
  }
}

interface State {
  readonly text: string
  readonly length: number
  /** The threads of each validator; undefined for one without a pattern. */
  readonly threads: readonly (Threads | undefined)[]
}

/** Letters, digits and signs that people read easily come first. */
const PREFERRED = [...'aA0-_ .@/:b1B'].map((character) => character.codePointAt(0)!)

function isCharacter(point: number): boolean {
  return point <= 0x10_ffff && (point < 0xd800 || point > 0xdfff)
}

function signatureOf(sets: readonly CodePoints[], point: number): string {
  return sets.map((set) => (hasCodePoint(set, point) ? '1' : '0')).join('')
}

function nameOf({ length, threads }: State, depth: number): string {
  return `${Math.min(length, depth)};${threads.map((each) => each?.join() ?? '').join(';')}`
}

function lengthsOf({ minimumLength, maximumLength }: TextJson) {
  return { minimum: minimumLength ?? 0, maximum: maximumLength ?? null }
}

function isLength({ minimumLength, maximumLength }: TextJson, length: number): boolean {
  return length >= (minimumLength ?? 0) && length <= (maximumLength ?? length)
}

/** Returns another text of the length for each number; the empty text has no other. */
function textOf(length: number, number: number): string {
  if (length === 0) return ''
  const first = number < LETTERS ? FIRST_LETTER + number : FIRST_OTHER + number
  return String.fromCodePoint(first) + 'a'.repeat(length - 1)
}

const FIRST_LETTER = 0x61
const LETTERS = 26
/** Far from the surrogates. */
const FIRST_OTHER = 0x1_0000
