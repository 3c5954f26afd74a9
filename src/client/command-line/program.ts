/** Declares the commands to cac. */
import { type CAC, type Command, cac } from 'cac'
import type { CommandSpec, OptionSpec, PositionalSpec } from '../contexts.ts'

export const JSON_OPTION = '--json'
export const HELP_OPTIONS: readonly string[] = ['--help', '-h']
/** Descriptions of the options that every command takes. */
export const PROGRAM_OPTIONS = {
  json: 'Print one JSON document on stdout and nothing else there',
  help: 'Show this help',
} as const

/** Declares the options that every command takes. */
export function declareProgram(): CAC {
  return cac('svc')
    .option(JSON_OPTION, PROGRAM_OPTIONS.json)
    .option('-h, --help', PROGRAM_OPTIONS.help)
}

/** Declares a command. The options keep the order of `spec.options`; `named` renames them. */
export function declareCommand(
  program: CAC,
  spec: CommandSpec,
  named: (option: string) => string = (option) => option,
): Command {
  const name = [spec.name, ...spec.positionals.map(positionalForm)].join(' ')
  const command = program.command(name, spec.summary).usage(wrapped(usageOf(spec)))
  for (const [option, declared] of Object.entries(spec.options)) {
    const { description, required } = declared
    command.option(
      optionForm(named(option), declared),
      required ? `${description} (required)` : description,
    )
  }
  // cac would print the default of `open` with `--no-open`.
  for (const option of command.options) delete option.config.default
  for (const example of spec.examples) command.example(`  ${example}`)
  return command
}

/** Returns the usage line of a command, without `svc`. */
export function usageOf(spec: CommandSpec): string {
  const required = Object.entries(spec.options).filter(([, option]) => option.required)
  const options = required.map(([name, option]) => optionForm(name, option))
  return [spec.name, ...spec.positionals.map(positionalForm), ...options, '[options]'].join(' ')
}

const USAGE_WIDTH_MAX = 90

/** Breaks a long line before an option with a backslash, so that a shell accepts it. */
function wrapped(usage: string): string {
  if (usage.length <= USAGE_WIDTH_MAX) return usage
  const end = usage.lastIndexOf(' --', USAGE_WIDTH_MAX)
  return `${usage.slice(0, end)} \\\n      ${usage.slice(end + 1)}`
}

/** Formats an option in the notation of cac, such as `--root <DIR>`. */
export function optionForm(name: string, { value }: Pick<OptionSpec, 'value'>): string {
  return value === null ? `--${name}` : `--${name} <${value}>`
}

function positionalForm({ name, required }: PositionalSpec): string {
  return required ? `<${name}>` : `[${name}]`
}
