/** The commands of `svc` as a shell completes them. */
import {
  type CompletedOption,
  type CompletedProgram,
  type CompletedValue,
  pathOrText,
} from '../../shells/programs.ts'
import type { CommandSpec, OptionSpec, PositionalSpec } from '../contexts.ts'
import { HELP_OPTIONS, JSON_OPTION, PROGRAM_OPTIONS } from './program.ts'

export function completedClient(commands: readonly CommandSpec[]): CompletedProgram {
  const completed = commands.map((spec) => ({
    name: spec.name,
    summary: spec.summary,
    options: Object.entries(spec.options).map(([name, declared]) => optionOf(name, declared)),
    positionals: spec.positionals.map(({ name, ...declared }) => completedValue(name, declared)),
  }))
  return {
    name: 'svc',
    commands: completed,
    options: [
      switchOf(JSON_OPTION, PROGRAM_OPTIONS.json),
      switchOf(HELP_OPTIONS[0]!, PROGRAM_OPTIONS.help),
    ],
    rootOptions: [switchOf('--version', 'Print the version of this client')],
    hasHelpWord: true,
  }
}

function switchOf(name: string, summary: string): CompletedOption {
  return { name, summary, value: null, repeats: false }
}

function optionOf(name: string, declared: OptionSpec): CompletedOption {
  const { value, description, repeats } = declared
  return {
    name: `--${name}`,
    summary: description,
    value: value === null ? null : completedValue(value, declared),
    repeats: repeats === true,
  }
}

function completedValue(
  name: string,
  { values, list }: Pick<OptionSpec | PositionalSpec, 'values' | 'list'>,
): CompletedValue {
  return values === undefined ? pathOrText(name) : { kind: list ? 'list' : 'words', words: values }
}
