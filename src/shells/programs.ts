/** The words of a program that a shell completes, and the tables of its script. */

/** The values that an option or a positional argument takes. */
export type CompletedValue =
  | { readonly kind: 'text' | 'file' | 'directory' }
  | { readonly kind: 'words' | 'list'; readonly words: readonly string[] }

export interface CompletedOption {
  /** The name with its dashes. */
  readonly name: string
  readonly summary: string
  /** Null for an option without a value. */
  readonly value: CompletedValue | null
  readonly repeats: boolean
}

export interface CompletedCommand {
  /** One or more words. */
  readonly name: string
  readonly summary: string
  readonly options: readonly CompletedOption[]
  readonly positionals: readonly CompletedValue[]
}

export interface CompletedProgram {
  readonly name: string
  readonly commands: readonly CompletedCommand[]
  /** The options that every command takes. */
  readonly options: readonly CompletedOption[]
  /** The options in place of a command, such as `--version`. */
  readonly rootOptions: readonly CompletedOption[]
  /** Tells whether `help` may precede the words of a command. */
  readonly hasHelpWord: boolean
}

/** A word with its summary. */
export type Described = readonly [word: string, summary: string]

/**
 * The tables of a script. A node is the words of a command that were typed so far, joined by
 * spaces; the key of a value is a node and an option, or a node and `#` with the position.
 */
export interface Lookups {
  readonly words: ReadonlyMap<string, readonly Described[]>
  readonly options: ReadonlyMap<string, readonly CompletedOption[]>
  readonly values: ReadonlyMap<string, CompletedValue>
}

const WORD = /^[a-z0-9][a-z0-9-]*$/
const OPTION = /^--?[a-zA-Z0-9][a-zA-Z0-9-]*$/

/** Builds the tables. Throws if a name has a character that a script could treat as syntax. */
export function lookupsOf(program: CompletedProgram): Lookups {
  const { commands } = program
  const words = new Map<string, Map<string, string>>([['', new Map()]])
  const options = new Map<string, readonly CompletedOption[]>()
  const values = new Map<string, CompletedValue>()
  const setOptions = (node: string, declared: readonly CompletedOption[]): void => {
    for (const { name, value } of declared) {
      requireForm(name, OPTION)
      if (value !== null) values.set(`${node} ${name}`, value)
    }
    options.set(node, declared)
  }
  requireForm(program.name, WORD)
  for (const { name } of commands) {
    const path = name.split(' ')
    for (const [i, word] of path.entries()) {
      requireForm(word, WORD)
      const node = path.slice(0, i).join(' ')
      const children = words.get(node) ?? new Map<string, string>()
      words.set(node, children.set(word, summaryOf(path.slice(0, i + 1).join(' '), commands)))
      if (node !== '') setOptions(node, program.options)
    }
  }
  setOptions('', [...program.options, ...program.rootOptions])
  for (const { name, options: declared, positionals } of commands) {
    setOptions(name, [...declared, ...program.options])
    for (const [i, value] of positionals.entries()) values.set(`${name} #${i}`, value)
  }
  const entries = [...words].map(([node, children]) => [node, [...children]] as const)
  return { words: new Map(entries), options, values }
}

function requireForm(name: string, form: RegExp): void {
  if (!form.test(name)) throw new TypeError(`${JSON.stringify(name)} cannot be completed`)
}

/** Returns the summary of a command, or the words of a group. */
function summaryOf(node: string, commands: readonly CompletedCommand[]): string {
  const command = commands.find(({ name }) => name === node)
  if (command !== undefined) return command.summary
  const within = commands.filter(({ name }) => name.startsWith(`${node} `))
  const next = within.map(({ name }) => name.slice(node.length + 1).split(' ')[0]!)
  return [...new Set(next)].join(', ')
}

/** Keys whose entries have the same text. */
export interface Branch {
  readonly keys: readonly string[]
  readonly text: string
}

/** Renders the entries, and joins the keys of those that are equal. Empty texts are left out. */
export function branches<T>(
  table: ReadonlyMap<string, T>,
  render: (entry: T) => string,
): readonly Branch[] {
  const byText = new Map<string, string[]>()
  for (const [key, entry] of table) {
    const text = render(entry)
    byText.set(text, [...(byText.get(text) ?? []), key])
  }
  byText.delete('')
  return [...byText].map(([text, keys]) => ({ keys, text }))
}

/** The words of a value; none where it has no closed set. */
export function wordsOf(value: CompletedValue): readonly string[] {
  return value.kind === 'words' || value.kind === 'list' ? value.words : []
}

/** The values whose names in a usage line stand for a path. */
const PATHS: Readonly<Record<string, CompletedValue>> = {
  FILE: { kind: 'file' },
  BACKUP: { kind: 'file' },
  DIR: { kind: 'directory' },
}

/** Returns the kind of a value without a closed set, by its name in a usage line. */
export function pathOrText(name: string): CompletedValue {
  return PATHS[name] ?? { kind: 'text' }
}
