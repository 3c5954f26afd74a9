/** The help texts, all from the declarations of the commands. */
import type { Json } from '../value/strict-json.ts'
import type { CommandSpec } from './contexts.ts'

const GLOBAL: readonly (readonly [string, string])[] = [
  ['--json', 'Print one JSON document on stdout and nothing else there'],
  ['-h, --help', 'Show this help'],
]

export function programHelp(commands: readonly CommandSpec[]): string[] {
  const width = Math.max(...commands.map((command) => command.name.length))
  return [
    'Usage: svc COMMAND [OPTIONS]',
    '',
    'Commands:',
    ...commands.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`),
    '',
    'Options:',
    ...columns(GLOBAL),
    '',
    'Run `svc COMMAND --help` for one command.',
    'Exit codes: 0 done, 1 internal, 2 usage, 3 authentication or authorization, 4 conflict,',
    '5 unavailable, 6 corruption, 7 not found, 8 invalid input, 9 uncertain outcome,',
    '130 interrupted.',
  ]
}

export function commandHelp(command: CommandSpec): string[] {
  const positionals = command.positionals.map(
    ({ name, description }) => [name, description] as const,
  )
  return [
    `Usage: ${usageLine(command)}`,
    '',
    `${command.summary}.`,
    ...command.details,
    ...(positionals.length === 0 ? [] : ['', 'Arguments:', ...columns(positionals)]),
    '',
    'Options:',
    ...columns([...optionRows(command), ...GLOBAL]),
    ...(command.examples.length === 0 ? [] : ['', 'Examples:']),
    ...command.examples.map((example) => `  ${example}`),
  ]
}

export function helpDocument(commands: readonly CommandSpec[]): Json {
  return {
    version: 1,
    commands: commands.map((command) => ({
      name: command.name,
      summary: command.summary,
      usage: usageLine(command),
      arguments: command.positionals.map(({ name, description, required }) => ({
        name,
        description,
        required,
      })),
      options: Object.entries(command.options).map(([name, { value, description, required }]) => ({
        name: `--${name}`,
        value,
        description,
        required,
      })),
    })),
  }
}

function usageLine(command: CommandSpec): string {
  const options = Object.entries(command.options)
    .filter(([, option]) => option.required)
    .map(([name, { value }]) => (value === null ? `--${name}` : `--${name} ${value}`))
  const positionals = command.positionals.map(({ name, required }) =>
    required ? name : `[${name}]`,
  )
  return ['svc', command.name, ...positionals, ...options, '[OPTIONS]'].join(' ')
}

function optionRows(command: CommandSpec): (readonly [string, string])[] {
  return Object.entries(command.options).map(([name, { value, description, required }]) => [
    value === null ? `--${name}` : `--${name} ${value}`,
    required ? `${description} (required)` : description,
  ])
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
