/**
 * Parses the command line with cac, but more strictly: values stay exactly as typed, an option is
 * written exactly as declared and given once, and the message for an unknown word suggests the
 * nearest known one.
 */
import type { CAC, Command } from 'cac'
import type { Fault } from '../../errors/fault.ts'
import type { CommandSpec, Invocation, OptionSpec } from '../contexts.ts'
import { usage } from '../usage.ts'
import { declareCommand, declareProgram, HELP_OPTIONS, JSON_OPTION, optionForm } from './program.ts'

export interface ParsedLine {
  /** Null for the program itself, as `svc --help`, and for a group, as `svc buckets --help`. */
  readonly command: CommandSpec | null
  /** The words that begin the names of a group of commands; null for none. */
  readonly group: string | null
  readonly json: boolean
  readonly help: boolean
  readonly invocation: Invocation
}

/** Tells whether failures are printed as JSON, also for a command line that does not parse. */
export function wantsJson(argv: readonly string[]): boolean {
  return beforeDashes(argv).includes(JSON_OPTION)
}

/** Parses the words after the program name. Throws CLIENT_USAGE. */
export function parseLine(argv: readonly string[], commands: readonly CommandSpec[]): ParsedLine {
  const line = helpWord(argv)
  const json = wantsJson(line)
  const isHelp = beforeDashes(line).some((word) => HELP_OPTIONS.includes(word))
  const invocation = { options: {}, positionals: [] }
  const group = isHelp ? groupOf(line, commands) : null
  if (group !== null) return { command: null, group, json, help: true, invocation }
  const { command, rest } = findCommand(line, commands)
  if (command === null || isHelp) return { command, group: null, json, help: true, invocation }
  return { command, group: null, json, help: false, invocation: parseCommand(command, rest) }
}

/** Returns `COMMAND --help` for `help COMMAND`. */
function helpWord(argv: readonly string[]): readonly string[] {
  const at = argv.findIndex((word) => word !== JSON_OPTION)
  return argv[at] === 'help' ? [...argv.slice(0, at), ...argv.slice(at + 1), '--help'] : argv
}

/** Returns the group that the words name; null if they name a command or nothing. */
function groupOf(argv: readonly string[], commands: readonly CommandSpec[]): string | null {
  const group = beforeDashes(argv)
    .filter((word) => word !== JSON_OPTION && !HELP_OPTIONS.includes(word))
    .join(' ')
  const isCommand = commands.some(({ name }) => name === group)
  return !isCommand && commands.some(({ name }) => name.startsWith(`${group} `)) ? group : null
}

/**
 * Finds the command, which has one to three words although cac only supports one. Only `--json` and
 * the help options may precede it.
 */
function findCommand(argv: readonly string[], commands: readonly CommandSpec[]) {
  const rest = [...argv]
  const leading: string[] = []
  while ([JSON_OPTION, ...HELP_OPTIONS].includes(rest[0] ?? '')) leading.push(rest.shift()!)
  const [first, second] = rest
  if (first === undefined) return { command: null, rest: leading }
  if (first === '--version' || first === '-v') rest[0] = 'version'
  for (const words of [3, 2]) {
    const name = rest.slice(0, words).join(' ')
    const found = commands.find((known) => known.name === name)
    if (found !== undefined) return { command: found, rest: [...leading, ...rest.slice(words)] }
  }
  const alone = second === undefined || second.startsWith('-')
  const one = commands.find(({ name, alias }) => name === rest[0] || (alone && alias === rest[0]))
  if (one !== undefined) return { command: one, rest: [...leading, ...rest.slice(1)] }
  throw unknownCommand(rest, commands)
}

function unknownCommand(rest: readonly string[], commands: readonly CommandSpec[]): Fault {
  const first = rest[0]!
  if (first.startsWith('-')) return usage(`Unknown option ${shown(first)} before a command.`)
  const names = commands.map((known) => known.name)
  const wordsIn = (group: string): string[] => {
    const inside = names.filter((name) => name.startsWith(`${group} `))
    return [...new Set(inside.map((name) => name.slice(group.length + 1).split(' ')[0]!))]
  }
  // The words that begin names of commands, and the next one.
  let typed = first
  for (const [i, word] of rest.entries()) {
    const group = rest.slice(0, i + 1).join(' ')
    const choices = wordsIn(group)
    const next = rest[i + 1]
    if (choices.length === 0 || word.startsWith('-')) break
    if (next === undefined || next.startsWith('-')) {
      return usage(`${group} needs one of: ${choices.join(', ')}.`)
    }
    typed = `${group} ${next}`
  }
  const groups = names.flatMap((name) => {
    const words = name.split(' ')
    return words.slice(1).map((_, i) => words.slice(0, i + 1).join(' '))
  })
  const end = rest.findIndex((word) => word.startsWith('-'))
  const words = rest.slice(0, end === -1 ? rest.length : end).join(' ')
  const near = suggestion(words, names) || suggestion(typed, [...names, ...groups])
  return usage(`Unknown command ${shown(typed)}.${near}`)
}

/**
 * Prefix of every value while cac parses it, since cac would convert some values to numbers or
 * booleans and mistake others for options. No argument of a process can contain it.
 */
const GUARD = '\0'

/** Renames `--no-location` for cac, which would parse it as the negation of `--location`. */
function unnegated(option: string): string {
  return option.replace(/^(--)?no-/, '$1no_')
}

function parseCommand(spec: CommandSpec, words: readonly string[]): Invocation {
  const program = declareProgram()
  const command = declareCommand(program, spec, unnegated)
  const before = beforeDashes(words)
  const guarded = before.map((word) =>
    isOption(word) ? unnegated(word).replace('=', `=${GUARD}`) : GUARD + word,
  )
  // cac expects the arguments of a process: the third is the first one that it parses.
  program.parse(['', '', spec.name, ...guarded], { run: false })
  const literal = words.slice(before.length + 1)
  program.args = [...program.args.map(unguarded), ...literal]
  checkValues(program, command, spec)
  checkOptionWords(before.filter(isOption), spec)
  const options = readOptions(program, command, spec)
  checkPositionals(program, command, spec)
  return { options, positionals: program.args }
}

/** Returns the words before `--`; the words after it are never options. */
function beforeDashes(words: readonly string[]): readonly string[] {
  const end = words.indexOf('--')
  return end === -1 ? words : words.slice(0, end)
}

/** Tells whether a word is an option. A single dash is a value: it names standard input. */
function isOption(word: string): boolean {
  return word.startsWith('-') && word !== '-'
}

function unguarded(value: string): string {
  return value.slice(GUARD.length)
}

/** Runs a check of cac. Its failure becomes a usage fault that does not repeat what was typed. */
function check(run: () => void, detail: () => string, spec: CommandSpec): void {
  try {
    run()
  } catch {
    throw usage(detail(), spec)
  }
}

function checkValues(program: CAC, command: Command, spec: CommandSpec): void {
  const valueless = (): string | undefined =>
    Object.keys(spec.options).find((_, i) => {
      const { required, name } = command.options[i]!
      return required && program.options[name] === true
    })
  check(
    () => command.checkOptionValue(),
    () => `--${valueless()} needs a value; write --${valueless()}=VALUE if it begins with -.`,
    spec,
  )
}

/** Rejects what cac's own check accepts, such as `--codeEnv`, `--root.x`, `--no-remote`, `-abc`. */
function checkOptionWords(words: readonly string[], spec: CommandSpec): void {
  const switches = Object.entries(spec.options).filter(([, { value }]) => value === null)
  const noValue = [JSON_OPTION, ...switches.map(([name]) => `--${name}`)]
  const known = [...Object.keys(spec.options).map((name) => `--${name}`), JSON_OPTION]
  const seen = new Set<string>()
  for (const word of words) {
    const [name = ''] = word.split('=', 1)
    if (!known.includes(name)) {
      throw usage(`Unknown option ${shown(name)}.${suggestion(name, known)}`, spec)
    }
    const isRepeated = spec.options[name.slice(2)]?.repeats
    if (seen.has(name) && !isRepeated) throw usage(`${name} is given twice.`, spec)
    if (noValue.includes(name) && name !== word) throw usage(`${name} takes no value.`, spec)
    seen.add(name)
  }
}

/** Names all missing options at once. */
function requireOptions(program: CAC, command: Command, spec: CommandSpec): void {
  const missing = Object.entries(spec.options).filter(
    ([, { required }], i) => required && program.options[command.options[i]!.name] === undefined,
  )
  if (missing.length === 0) return
  const each = missing.map(
    ([name, option]) => `${optionForm(name, option)} is required: ${option.description}.`,
  )
  throw usage(each.join(' '), spec)
}

function readOptions(program: CAC, command: Command, spec: CommandSpec): Invocation['options'] {
  requireOptions(program, command, spec)
  const options: Record<string, string | readonly string[] | boolean | undefined> = {}
  for (const [i, [name, declared]] of Object.entries(spec.options).entries()) {
    const value: string | string[] | boolean | undefined = program.options[command.options[i]!.name]
    const isGiven = value !== undefined
    if (declared.value === null) options[name] = isGiven
    else if ([value].flat().includes(GUARD)) throw usage(`--${name} needs a value.`, spec)
    else if (declared.repeats) {
      options[name] = isGiven ? [value as string | string[]].flat().map(unguarded) : []
    } else if (typeof value === 'string') options[name] = unguarded(value)
    checkChoice(`--${name}`, declared, options[name], spec)
  }
  return options
}

/** Rejects a value that is not one of a closed set. The message does not repeat the value. */
function checkChoice(
  of: string,
  { values, list }: Pick<OptionSpec, 'values' | 'list'>,
  given: Invocation['options'][string],
  spec: CommandSpec,
): void {
  if (values === undefined || given === undefined || typeof given === 'boolean') return
  const parts = [given].flat().flatMap((text) => (list ? listParts(text) : [text]))
  if (parts.every((part) => values.includes(part))) return
  const choices = values.join(', ')
  throw usage(`${of} ${list ? 'needs a list of some of:' : 'must be one of'} ${choices}.`, spec)
}

/** Returns the parts of a list of the command line, sorted and each once. */
export function listParts(text: string): string[] {
  return [...new Set(text.split(',').map((part) => part.trim()))].sort()
}

function checkPositionals(program: CAC, command: Command, spec: CommandSpec): void {
  const { args } = program
  check(
    () => command.checkRequiredArgs(),
    () => `${command.args[args.length]?.value} is required.`,
    spec,
  )
  check(
    () => command.checkUnusedArgs(),
    () => `Unexpected ${shown(args[command.args.length]!)}.`,
    spec,
  )
  for (const [i, declared] of spec.positionals.entries()) {
    checkChoice(declared.name, declared, args[i], spec)
  }
}

/** Shortens a typed word for a message, and omits one that looks like a credential. */
function shown(text: string): string {
  if (text === '') return '(empty)'
  if (/rk_[a-z]+_/.test(text)) return '(a credential: never pass one as an argument)'
  return text.length > 40 ? `${text.slice(0, 40)}...` : text
}

/** A question that names the nearest name, after a space; empty where none is near. */
export function suggestion(typed: string, names: readonly string[]): string {
  const scored = names
    .map((name) => ({ name, distance: editDistance(typed, name) }))
    .sort((a, b) => a.distance - b.distance)
  const best = scored[0]
  if (best === undefined || best.distance > Math.max(2, Math.floor(best.name.length / 3))) return ''
  return ` Did you mean ${best.name}?`
}

/** The Levenshtein distance of two short texts. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= Math.min(a.length, 64); i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitute = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, substitute))
    }
    row = next
  }
  return row[b.length]!
}
