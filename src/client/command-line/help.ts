/** The help texts, which cac formats from the declarations of the commands. */
import type { CAC, Command } from 'cac'
import type { Json } from '../../value/strict-json.ts'
import type { CommandSpec } from '../contexts.ts'
import { declareCommand, declareProgram, usageOf } from './program.ts'

type HelpSection = Parameters<NonNullable<Command['helpCallback']>>[0][number]

/** Exit codes of every command (contract/wire.md, Exit codes). */
export const EXIT_CODES: Readonly<Record<string, string>> = {
  0: 'done',
  1: 'internal',
  2: 'usage',
  3: 'authentication or authorization',
  4: 'conflict',
  5: 'unavailable',
  6: 'corruption',
  7: 'not found',
  8: 'invalid input',
  9: 'uncertain outcome',
  78: 'setting of the server',
  130: 'interrupted',
}
const EXIT_LINE_COLUMNS = 96

export function programHelp(commands: readonly CommandSpec[]): string[] {
  const program = declareProgram().usage('<command> [options]')
  for (const { name, summary } of commands) program.command(name, summary)
  // cac's own hint lists every command a second time.
  const sections = takeSections(program, program.globalCommand).filter(
    ({ title }) => title?.startsWith('For more info') !== true,
  )
  return linesOf([
    ...sections,
    { title: 'Exit codes', body: indented(exitLines()) },
    { body: 'Run `svc <command> --help` for one command.' },
  ])
}

/** Returns the commands whose names begin with the words of the group. */
export function groupHelp(group: string, members: readonly CommandSpec[]): string[] {
  return linesOf([
    { title: 'Usage', body: `  $ svc ${group} <command> [options]` },
    { title: 'Commands', body: indented(memberRows(members)) },
    { body: `Run \`svc ${group} <command> --help\` for one command.` },
  ])
}

function memberRows(members: readonly CommandSpec[]): string[] {
  const width = Math.max(...members.map(({ name }) => name.length))
  return members.map(({ name, summary }) => `${name.padEnd(width)}  ${summary}`)
}

/** `members` are the commands whose names begin with that of the command. */
export function commandHelp(spec: CommandSpec, members: readonly CommandSpec[]): string[] {
  const program = declareProgram()
  const [usage, ...sections] = takeSections(program, declareCommand(program, spec))
  const { positionals } = spec
  const width = Math.max(...positionals.map(({ name }) => name.length))
  const rows = positionals.map(({ name, description }) => `${name.padEnd(width)}  ${description}`)
  return linesOf([
    usage!,
    { body: [`${spec.summary}.`, ...spec.details].join('\n') },
    ...(rows.length === 0 ? [] : [{ title: 'Arguments', body: indented(rows) }]),
    ...sections,
    ...(members.length === 0
      ? []
      : [{ title: 'Further commands', body: indented(memberRows(members)) }]),
  ])
}

export function helpDocument(commands: readonly CommandSpec[]): Json {
  return {
    version: 1,
    commands: commands.map((command) => ({
      name: command.name,
      summary: command.summary,
      usage: `svc ${usageOf(command)}`,
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

/** All exit codes in sentences, a line at a time. */
function exitLines(): string[] {
  const lines = ['']
  for (const [exit, meaning] of Object.entries(EXIT_CODES)) {
    const entry = `${exit} ${meaning},`
    const line = lines.at(-1)!
    if (line === '') lines[lines.length - 1] = entry
    else if (line.length + 1 + entry.length > EXIT_LINE_COLUMNS) lines.push(entry)
    else lines[lines.length - 1] = `${line} ${entry}`
  }
  lines[lines.length - 1] = lines.at(-1)!.replace(/,$/, '.')
  return lines
}

/** Ends the output of cac once its sections are taken. */
class SectionsTaken {}

/**
 * Returns the sections that cac would print, without the first, which only names the program. cac
 * prints to the console, which does not report that standard output is full or closed.
 */
function takeSections(program: CAC, command: Command): HelpSection[] {
  let taken: HelpSection[] = []
  program.globalCommand.helpCallback = (sections) => {
    taken = sections.slice(1)
    throw new SectionsTaken()
  }
  try {
    command.outputHelp()
  } catch (error) {
    if (!(error instanceof SectionsTaken)) throw error
  }
  return taken
}

function linesOf(sections: readonly HelpSection[]): string[] {
  const texts = sections.map(({ title, body }) =>
    title === undefined ? body : `${title}:\n${body}`,
  )
  // cac prints a trailing space for an option without a default.
  return texts
    .join('\n\n')
    .split('\n')
    .map((line) => line.trimEnd())
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}`).join('\n')
}
