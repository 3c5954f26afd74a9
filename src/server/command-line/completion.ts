/** `svc-server completion`: prints a script that completes the modes and their options. */

import { completionScript, isShell, SHELLS } from '../../shells/completion.ts'
import { type CompletedOption, type CompletedProgram, pathOrText } from '../../shells/programs.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'
import { MODES } from '../usage.ts'
import { MODE_OPTIONS } from './arguments.ts'
import type { ModeOption } from './options.ts'

export function completedServer(): CompletedProgram {
  return {
    name: 'svc-server',
    commands: MODES.map(([name, summary]) => ({
      name,
      summary,
      options: (MODE_OPTIONS[name] ?? []).map(completedOption),
      positionals: name === 'completion' ? [{ kind: 'words', words: SHELLS }] : [],
    })),
    options: [switchOf('--help', 'Show the help')],
    rootOptions: [switchOf('--version', 'Print the version')],
    hasHelpWord: false,
  }
}

function switchOf(name: string, summary: string): CompletedOption {
  return { name, summary, value: null, repeats: false }
}

function completedOption({ name, value, description, repeats }: ModeOption): CompletedOption {
  return {
    name,
    summary: description,
    value: value === null ? null : pathOrText(value),
    repeats: repeats === true,
  }
}

export async function run(
  _environment: ProcessEnvironment,
  io: ServerIo,
  [shell]: readonly string[],
): Promise<number> {
  if (!isShell(shell)) return 2
  io.out(completionScript(shell, completedServer()))
  return 0
}
