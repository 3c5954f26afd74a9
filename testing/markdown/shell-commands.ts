/** The commands of a shell script, as far as the samples of documents use the language. */

const OPERATORS = /^(?:&&|\|\||;;|>>|2>|[|&;()<>])/

/**
 * The words of each simple command, those inside of `$(...)` included. Variables stay as written;
 * assignments before a command, redirections and comments are left out.
 */
export function shellCommands(script: string): string[][] {
  const commands: string[][] = []
  new Reader(script, commands).read()
  return commands.map(withoutAssignments).filter((words) => words.length > 0)
}

function withoutAssignments(words: readonly string[]): string[] {
  const first = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word))
  return first === -1 ? [] : words.slice(first)
}

class Reader {
  readonly #text: string
  readonly #commands: string[][]
  #at = 0
  #words: string[] = []
  /** The word that is being read; null between words. */
  #word: string | null = null
  /** True if the next word is the file of a redirection. */
  #redirects = false

  constructor(text: string, commands: string[][]) {
    this.#text = text
    this.#commands = commands
  }

  read(): void {
    while (this.#at < this.#text.length) this.#step()
    this.#endCommand()
  }

  #step(): void {
    const rest = this.#text.slice(this.#at)
    const c = rest[0]!
    const operator =
      this.#word === null || !/^2>/.test(rest) ? OPERATORS.exec(rest)?.[0] : undefined
    if (rest.startsWith('\\\n')) this.#at += 2
    else if (c === '\\') this.#take(rest[1] ?? '', 2)
    else if (c === "'") this.#quoted(rest)
    else if (c === '"') this.#doubleQuoted()
    else if (rest.startsWith('$(')) this.#take(this.#substitution(), 0)
    else if (c === '#' && this.#word === null) this.#at += /^[^\n]*/.exec(rest)![0].length
    else if (c === '\n') this.#operator(c)
    else if (c === ' ' || c === '\t') this.#space()
    else if (operator !== undefined) this.#operator(operator)
    else this.#take(c, 1)
  }

  #take(text: string, length: number): void {
    this.#word = (this.#word ?? '') + text
    this.#at += length
  }

  #space(): void {
    this.#endWord()
    this.#at += 1
  }

  #operator(operator: string): void {
    this.#endWord()
    this.#at += operator.length
    if (/[<>]/.test(operator)) this.#redirects = true
    else this.#endCommand()
  }

  #quoted(rest: string): void {
    const end = rest.indexOf("'", 1)
    this.#take(rest.slice(1, end), end + 1)
  }

  #doubleQuoted(): void {
    this.#take('', 1)
    while (this.#at < this.#text.length && this.#text[this.#at] !== '"') {
      const rest = this.#text.slice(this.#at)
      if (rest.startsWith('$(')) this.#take(this.#substitution(), 0)
      else if (/^\\["\\$`]/.test(rest)) this.#take(rest[1]!, 2)
      else this.#take(rest[0]!, 1)
    }
    this.#at += 1
  }

  /** Reads the commands inside, and returns what stands for their output. */
  #substitution(): string {
    const start = this.#at + 2
    let depth = 1
    let end = start
    while (end < this.#text.length && depth > 0) {
      const c = this.#text[end]
      depth += c === '(' ? 1 : c === ')' ? -1 : 0
      end += 1
    }
    new Reader(this.#text.slice(start, end - 1), this.#commands).read()
    this.#at = end
    return '$()'
  }

  #endWord(): void {
    if (this.#word !== null && !this.#redirects) this.#words.push(this.#word)
    if (this.#word !== null) this.#redirects = false
    this.#word = null
  }

  #endCommand(): void {
    this.#endWord()
    if (this.#words.length > 0) this.#commands.push(this.#words)
    this.#words = []
  }
}
