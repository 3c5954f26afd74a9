/** The commands as cac knows them, and the help that it writes from the declarations. */
import { type CAC, type Command, cac } from 'cac'
import type { CommandSpec, OptionSpec, PositionalSpec } from './contexts.ts'

export const JSON_OPTION = '--json'
export const HELP_OPTIONS: readonly string[] = ['--help', '-h']

/** Declares the options that every command takes. */
export function declareProgram(): CAC {
  return cac('svc')
    .option(JSON_OPTION, 'Print one JSON document on stdout and nothing else there')
    .option('-h, --help', 'Show this help')
}

/** `options` of the result has the order of `spec.options`; `named` changes their names. */
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
  // The help would say of `--no-open` that it is on by default, which cac means of `open`.
  for (const option of command.options) delete option.config.default
  for (const example of spec.examples) command.example(`  ${example}`)
  return command
}

/** What follows `svc` in the line that shows how a command is used. */
export function usageOf(spec: CommandSpec): string {
  const required = Object.entries(spec.options).filter(([, option]) => option.required)
  const options = required.map(([name, option]) => optionForm(name, option))
  return [spec.name, ...spec.positionals.map(positionalForm), ...options, '[options]'].join(' ')
}

const USAGE_WIDTH_MAX = 90

/** Breaks a long line before an option, as a shell would let it be typed. */
function wrapped(usage: string): string {
  if (usage.length <= USAGE_WIDTH_MAX) return usage
  const end = usage.lastIndexOf(' --', USAGE_WIDTH_MAX)
  return `${usage.slice(0, end)} \\\n      ${usage.slice(end + 1)}`
}

/** An option in cac's notation, such as `--root <DIR>`. */
export function optionForm(name: string, { value }: Pick<OptionSpec, 'value'>): string {
  return value === null ? `--${name}` : `--${name} <${value}>`
}

function positionalForm({ name, required }: PositionalSpec): string {
  return required ? `<${name}>` : `[${name}]`
}
