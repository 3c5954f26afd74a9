/** Reader of the code points of a pattern. Positions count UTF-16 units. */
import { PatternError } from './pattern-error.ts'

export class TextReader {
  position = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  get atEnd(): boolean {
    return this.position >= this.#text.length
  }

  sees(text: string): boolean {
    return this.#text.startsWith(text, this.position)
  }

  /** Consumes the text if it is next. Returns whether it was. */
  take(text: string): boolean {
    if (!this.sees(text)) return false
    this.position += text.length
    return true
  }

  /** Consumes a match of `form`, a sticky expression, at the position. */
  takeForm(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.position
    const found = form.exec(this.#text)
    if (found !== null) this.position += found[0].length
    return found
  }

  /** Consumes a code point. Throws PatternError at the end. */
  next(): number {
    const point = this.#text.codePointAt(this.position)
    if (point === undefined) throw this.error('an end where more is needed', 'Complete it')
    this.position += point > 0xffff ? 2 : 1
    return point
  }

  /** Creates an error for the construct that begins `back` units before the position. */
  error(wrong: string, fix: string, back = 0): PatternError {
    return new PatternError(`${wrong} at character ${this.position - back + 1}`, fix)
  }
}
