/** Reads the TypeScript files of the project for the tidy rules and separates code from text. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export interface Import {
  /** The specifier as written. */
  readonly specifier: string
  /** Path from the project's root if the specifier is relative, otherwise null. */
  readonly path: string | null
  readonly typeOnly: boolean
  /** True if an import expression loads the module, false if it is loaded at the start. */
  readonly lazy: boolean
  readonly line: number
}

export interface SourceFile {
  /** Path from the project's root, with slashes. */
  readonly path: string
  readonly lines: readonly string[]
  /** The lines with comments and the contents of strings blanked. */
  readonly code: readonly string[]
  /** The lines with everything except the contents of strings blanked. */
  readonly strings: readonly string[]
  readonly imports: readonly Import[]
}

export interface Finding {
  readonly file: string
  readonly line: number
  readonly rule: string
  readonly replacement: string
}

/** Returns whether a file is a test or a suite that several implementations of a port share. */
export function isTest(path: string): boolean {
  return /(?:\.test|-suite)\.ts$/.test(path) || path.startsWith('e2e/')
}

export function isGenerated(path: string): boolean {
  return path.endsWith('.generated.ts')
}

export function readSourceFiles(root: string): SourceFile[] {
  const paths = ['src', 'build', 'testing', 'bench', 'e2e'].flatMap((folder) => walk(root, folder))
  return paths.sort().map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')))
}

/** Returns the paths of all .ts files below `folder`, from the root. */
function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return walk(root, path)
    return path.endsWith('.ts') || path.endsWith('.tsx') ? [path] : []
  })
}

export function parseSource(path: string, text: string): SourceFile {
  const { code, strings } = separate(text)
  const codeLines = code.split('\n')
  return {
    path,
    lines: text.split('\n'),
    code: codeLines,
    strings: strings.split('\n'),
    imports: findImports(path, text, code),
  }
}

const IMPORT =
  /\b(import|export)(\s+type)?\s+(?:[\w*\s{},$]*?\s+from\s+)?(['"])|\bimport\s*\(\s*(['"])/g

function findImports(path: string, text: string, code: string): Import[] {
  const imports: Import[] = []
  for (const match of code.matchAll(IMPORT)) {
    const start = match.index + match[0].length
    const end = text.indexOf(match[3] ?? match[4] ?? '', start)
    const specifier = text.slice(start, end)
    imports.push({
      specifier,
      path: specifier.startsWith('.')
        ? posix.normalize(posix.join(posix.dirname(path), specifier))
        : null,
      typeOnly: match[2] !== undefined,
      lazy: match[4] !== undefined,
      line: code.slice(0, match.index).split('\n').length,
    })
  }
  return imports
}

/** A slash after one of these begins a regular expression. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else))\s*$/

type Mode = 'code' | 'line' | 'block' | 'regex' | 'text'

/** Returns two texts of equal length: one without comments and strings, one with strings alone. */
function separate(text: string): { code: string; strings: string } {
  const separator = new Separator(text)
  while (separator.step());
  return separator
}

class Separator {
  code = ''
  strings = ''
  readonly #text: string
  #at = 0
  #mode: Mode = 'code'
  #quote = ''
  #inClass = false
  /** The depth of braces inside the current `${` of each open template literal. */
  readonly #templates: number[] = []

  constructor(text: string) {
    this.#text = text
  }

  /** Processes one character. Returns false at the end of the text. */
  step(): boolean {
    const c = this.#text[this.#at]
    if (c === undefined) return false
    if (c === '\n') this.#newline()
    else if (this.#mode === 'code') this.#inCode(c)
    else if (this.#mode === 'text') this.#inText(c)
    else if (this.#mode === 'regex') this.#inRegex(c)
    else this.#inComment()
    return true
  }

  #two(): string {
    return this.#text.slice(this.#at, this.#at + 2)
  }

  #put(code: string, strings: string): void {
    this.code += code
    this.strings += strings
    this.#at += code.length
  }

  #newline(): void {
    this.#put('\n', '\n')
    const continues = this.#mode === 'block' || (this.#mode === 'text' && this.#quote === '`')
    if (!continues) this.#mode = 'code'
  }

  #inComment(): void {
    const ends = this.#mode === 'block' && this.#two() === '*/'
    if (ends) this.#mode = 'code'
    this.#put(ends ? '  ' : ' ', ends ? '  ' : ' ')
  }

  #inRegex(c: string): void {
    if (c === '[') this.#inClass = true
    else if (c === ']') this.#inClass = false
    else if (c === '/' && !this.#inClass) this.#mode = 'code'
    const width = c === '\\' ? 2 : 1
    this.#put(' '.repeat(width), ' '.repeat(width))
  }

  #inText(c: string): void {
    if (c === '\\') this.#put('  ', this.#two())
    else if (c === this.#quote) {
      this.#put(c, ' ')
      this.#mode = 'code'
    } else if (this.#quote === '`' && this.#two() === '${') {
      this.#put('  ', '  ')
      this.#templates.push(0)
      this.#mode = 'code'
    } else this.#put(' ', c)
  }

  #inCode(c: string): void {
    const two = this.#two()
    const depth = this.#templates.at(-1)
    if (two === '//' || two === '/*') {
      this.#put('  ', '  ')
      this.#mode = two === '//' ? 'line' : 'block'
    } else if (c === '/' && BEFORE_REGEX.test(this.code.slice(-40))) {
      this.#put(' ', ' ')
      this.#inClass = false
      this.#mode = 'regex'
    } else if (c === "'" || c === '"' || c === '`') {
      this.#put(c, ' ')
      this.#quote = c
      this.#mode = 'text'
    } else if (c === '}' && depth === 0) {
      this.#put(' ', ' ')
      this.#templates.pop()
      this.#quote = '`'
      this.#mode = 'text'
    } else {
      const change = c === '{' ? 1 : c === '}' ? -1 : 0
      if (depth !== undefined) this.#templates[this.#templates.length - 1] = depth + change
      this.#put(c, ' ')
    }
  }
}
