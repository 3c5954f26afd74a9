/**
 * The command line against the commands that there are. Values stay exactly as typed (parsers that
 * make numbers of them turn the name 007 into 7), an option is given once, and whatever is unknown
 * is refused with the nearest known word.
 */
import { parseArgs } from 'node:util'
import { Fault } from '../errors/fault.ts'
import type { CommandSpec, Invocation, OptionSpec } from './contexts.ts'

export interface ParsedLine {
  /** Null for the program itself: `svc`, `svc --help`. */
  readonly command: CommandSpec | null
  readonly json: boolean
  readonly help: boolean
  readonly invocation: Invocation
}

/** A usage fault keeps the command whose help answers it. */
export class UsageCause {
  readonly command: string | null

  constructor(command: string | null) {
    this.command = command
  }
}

export function usage(detail: string, command: CommandSpec | null = null): Fault {
  return new Fault('CLIENT_USAGE', { detail, cause: new UsageCause(command?.name ?? null) })
}

/** Whether failures are to be printed as JSON, for a line that may not even parse. */
export function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end).includes('--json')
}

const HELP: readonly string[] = ['--help', '-h']

/** Faults: CLIENT_USAGE. */
export function parseLine(argv: readonly string[], commands: readonly CommandSpec[]): ParsedLine {
  const { command, rest } = findCommand(argv, commands)
  const json = wantsJson(argv)
  const help = rest.some((word) => HELP.includes(word))
  if (command === null || help) {
    return { command, json, help: true, invocation: { options: {}, positionals: [] } }
  }
  return { command, json, help, invocation: parseCommand(command, rest) }
}

/** The command is one word or two, before its options; `--json` may stand anywhere. */
function findCommand(argv: readonly string[], commands: readonly CommandSpec[]) {
  const rest = [...argv]
  const leading: string[] = []
  while (rest[0] === '--json' || HELP.includes(rest[0] ?? '')) leading.push(rest.shift()!)
  const [first, second] = rest
  if (first === undefined) return { command: null, rest: leading }
  if (first === '--version' || first === '-v') rest[0] = 'version'
  const two = commands.find((known) => known.name === `${first} ${second}`)
  if (two !== undefined) return { command: two, rest: [...leading, ...rest.slice(2)] }
  const alone = second === undefined || second.startsWith('-')
  const one = commands.find(({ name, alias }) => name === rest[0] || (alone && alias === rest[0]))
  if (one !== undefined) return { command: one, rest: [...leading, ...rest.slice(1)] }
  throw unknownCommand(first, second, commands)
}

function unknownCommand(
  first: string,
  second: string | undefined,
  commands: readonly CommandSpec[],
): Fault {
  if (first.startsWith('-')) return usage(`Unknown option ${shown(first)} before a command.`)
  const names = commands.map((known) => known.name)
  const group = names.filter((name) => name.startsWith(`${first} `))
  if (group.length > 0 && (second === undefined || second.startsWith('-'))) {
    return usage(`${first} needs one of: ${group.map((name) => name.split(' ')[1]).join(', ')}.`)
  }
  const typed = group.length > 0 && second !== undefined ? `${first} ${second}` : first
  return usage(`Unknown command ${shown(typed)}.${suggestion(typed, names)}`)
}

function parseCommand(command: CommandSpec, words: readonly string[]): Invocation {
  const known: Readonly<Record<string, Pick<OptionSpec, 'value'>>> = {
    ...command.options,
    json: { value: null },
  }
  const config = Object.fromEntries(
    Object.entries(known).map(([name, { value }]) => [
      name,
      { type: value === null ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { tokens } = parseArgs({
    args: [...words],
    options: config,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const options: Record<string, string | boolean | undefined> = {}
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    if (!Object.hasOwn(known, token.name)) {
      const names = Object.keys(known).map((name) => `--${name}`)
      const hint = suggestion(token.rawName, names)
      throw usage(`Unknown option ${shown(token.rawName)}.${hint}`, command)
    }
    if (Object.hasOwn(options, token.name)) throw usage(`--${token.name} is given twice.`, command)
    const takesValue = known[token.name]!.value !== null
    options[token.name] = takesValue ? textOf(token, command) : switchOf(token, command)
  }
  checkComplete(command, options, positionals)
  for (const [name, spec] of Object.entries(command.options)) {
    if (spec.value === null) options[name] ??= false
  }
  return { options, positionals }
}

interface OptionToken {
  readonly name: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

function textOf({ name, value, inlineValue }: OptionToken, command: CommandSpec): string {
  if (value === undefined || value === '') throw usage(`--${name} needs a value.`, command)
  if (inlineValue !== true && value.length > 1 && value.startsWith('-')) {
    throw usage(`--${name} needs a value; write --${name}=VALUE if it begins with -.`, command)
  }
  return value
}

function switchOf({ name, value }: OptionToken, command: CommandSpec): boolean {
  if (value !== undefined) throw usage(`--${name} takes no value.`, command)
  return true
}

function checkComplete(
  command: CommandSpec,
  options: Readonly<Record<string, unknown>>,
  positionals: readonly string[],
): void {
  for (const [name, spec] of Object.entries(command.options)) {
    if (spec.required && !Object.hasOwn(options, name)) {
      const form = spec.value === null ? `--${name}` : `--${name} ${spec.value}`
      throw usage(`${form} is required: ${spec.description}.`, command)
    }
  }
  const missing = command.positionals.find((spec, i) => spec.required && i >= positionals.length)
  if (missing !== undefined) throw usage(`${missing.name} is required.`, command)
  if (positionals.length > command.positionals.length) {
    throw usage(`Unexpected ${shown(positionals[command.positionals.length]!)}.`, command)
  }
}

/** What was typed, bounded; it may be a secret that was pasted in the wrong place. */
function shown(text: string): string {
  if (/rk_[a-z]+_/.test(text)) return '(a credential: never pass one as an argument)'
  return text.length > 40 ? `${text.slice(0, 40)}...` : text
}

function suggestion(typed: string, names: readonly string[]): string {
  const scored = names
    .map((name) => ({ name, distance: editDistance(typed, name) }))
    .sort((a, b) => a.distance - b.distance)
  const best = scored[0]
  if (best === undefined || best.distance > Math.max(2, Math.floor(best.name.length / 3))) return ''
  return ` Did you mean ${best.name}?`
}

/** Insertions, deletions and substitutions; texts are a few characters long. */
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
