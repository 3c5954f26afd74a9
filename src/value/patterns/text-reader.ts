/** A place in the text of a pattern, by UTF-16 unit; what is read are code points. */
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

  /** Whether the text was here; it is behind the place then. */
  take(text: string): boolean {
    if (!this.sees(text)) return false
    this.position += text.length
    return true
  }

  /** The form is sticky, and finds its end in one pass. */
  takeForm(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.position
    const found = form.exec(this.#text)
    if (found !== null) this.position += found[0].length
    return found
  }

  /** The code point here, which must be there. */
  next(): number {
    const point = this.#text.codePointAt(this.position)
    if (point === undefined) throw this.error('an end where more is needed', 'Complete it')
    this.position += point > 0xffff ? 2 : 1
    return point
  }

  /** `back` units before this place is where the construct begins. */
  error(wrong: string, mend: string, back = 0): PatternError {
    return new PatternError(`${wrong} at character ${this.position - back + 1}`, mend)
  }
}
