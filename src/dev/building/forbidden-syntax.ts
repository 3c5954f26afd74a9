/**
 * Finds `import(...)` and `import.meta` in a finished bundle, where they fail because a runner has
 * no files to load. The scanner recognizes strings, templates, comments and regular expressions, so
 * that it ignores imports in texts.
 */

export interface ForbiddenSyntax {
  readonly kind: 'import()' | 'import.meta'
  /** Index into the code. */
  readonly offset: number
}

const WORD = /[\p{ID_Continue}$\u200c\u200d]+/uy
const SPACE = /\s+/y
/** Words after which a slash begins a regular expression, since an expression can follow. */
const BEFORE_EXPRESSION = new Set(
  'return typeof case delete do else in instanceof new of throw void yield await'.split(' '),
)
/** Words whose parentheses are followed by a statement, and so perhaps a regular expression. */
const BEFORE_STATEMENT = new Set(['if', 'while', 'for', 'with'])

export function findForbiddenSyntax(code: string): ForbiddenSyntax[] {
  // Most bundles do not have the word and need no scan.
  return /\bimport\s*[(.]/.test(code) ? new Scanner(code).scan() : []
}

class Scanner {
  readonly #code: string
  readonly #found: ForbiddenSyntax[] = []
  /** An entry for each open brace: true if a template continues after it. */
  readonly #braces: boolean[] = []
  /** An entry for each open parenthesis: true if a statement follows it. */
  readonly #parentheses: boolean[] = []
  #at = 0
  #expressionNext = true
  #word = ''
  #memberNext = false

  constructor(code: string) {
    this.#code = code
  }

  scan(): ForbiddenSyntax[] {
    while (this.#at < this.#code.length) {
      const character = this.#code[this.#at]!
      if (this.#skip(SPACE)) continue
      if (character === '"' || character === "'") this.#string(character)
      else if (character === '`') this.#template()
      else if (character === '/') this.#slash()
      else if (this.#isWord()) this.#wordToken()
      else this.#punctuator(character)
    }
    return this.#found
  }

  #skip(form: RegExp): boolean {
    form.lastIndex = this.#at
    if (!form.test(this.#code)) return false
    this.#at = form.lastIndex
    return true
  }

  #isWord(): boolean {
    WORD.lastIndex = this.#at
    return WORD.test(this.#code)
  }

  #wordToken(): void {
    const start = this.#at
    this.#skip(WORD)
    const word = this.#code.slice(start, this.#at)
    if (word === 'import' && !this.#memberNext) this.#import(start)
    this.#expressionNext = !this.#memberNext && BEFORE_EXPRESSION.has(word)
    this.#word = this.#memberNext ? '' : word
    this.#memberNext = false
  }

  #import(offset: number): void {
    const following = this.#code.slice(this.#at, this.#at + 200).trimStart()
    if (/^\.\s*meta\b/.test(following)) this.#found.push({ kind: 'import.meta', offset })
    // A method may be called import: `{ import(file) { ... } }`.
    else if (following.startsWith('(') && !/^\([^()]*\)\s*\{/.test(following)) {
      this.#found.push({ kind: 'import()', offset })
    }
  }

  #string(quote: string): void {
    for (this.#at++; this.#at < this.#code.length; this.#at++) {
      const character = this.#code[this.#at]
      if (character === '\\') this.#at++
      else if (character === quote) break
    }
    this.#at++
    this.#operand()
  }

  /** Scans from the opening backtick, or from the brace that closes a substitution. */
  #template(): void {
    for (this.#at++; this.#at < this.#code.length; this.#at++) {
      const character = this.#code[this.#at]
      if (character === '\\') this.#at++
      else if (character === '`') break
      else if (character === '$' && this.#code[this.#at + 1] === '{') {
        this.#at += 2
        this.#braces.push(true)
        this.#operator()
        return
      }
    }
    this.#at++
    this.#operand()
  }

  #slash(): void {
    const next = this.#code[this.#at + 1]
    if (next === '/') this.#skipTo('\n')
    else if (next === '*') this.#skipTo('*/')
    else if (this.#expressionNext && this.#skip(/\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//y)) {
      this.#skip(WORD)
      this.#operand()
    } else {
      this.#at++
      this.#operator()
    }
  }

  #skipTo(end: string): void {
    const found = this.#code.indexOf(end, this.#at + 2)
    this.#at = found === -1 ? this.#code.length : found + end.length
  }

  #punctuator(character: string): void {
    const doubled = this.#code[this.#at + 1] === character
    switch (character) {
      case '{':
        this.#braces.push(false)
        this.#operator()
        break
      case '}':
        if (this.#braces.pop() === true) {
          this.#template()
          return
        }
        this.#operator()
        break
      case '(':
        this.#parentheses.push(BEFORE_STATEMENT.has(this.#word))
        this.#operator()
        break
      case ')':
        this.#expressionNext = this.#parentheses.pop() ?? false
        this.#word = ''
        break
      case ']':
        this.#operand()
        break
      case '.':
        this.#operator()
        // The dots of a spread are not member accesses.
        this.#memberNext = !doubled && this.#code[this.#at - 1] !== '.'
        break
      case '#':
        // A private member follows.
        this.#memberNext = true
        break
      case '+':
      case '-':
        // An increment does not change the state: `a++ / b` is a division.
        if (doubled) this.#at++
        else this.#operator()
        break
      default:
        this.#operator()
    }
    this.#at++
  }

  #operand(): void {
    this.#expressionNext = false
    this.#word = ''
    this.#memberNext = false
  }

  #operator(): void {
    this.#expressionNext = true
    this.#word = ''
    this.#memberNext = false
  }
}
