/** The completion scripts by shell. */
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import type { CompletedProgram } from './programs.ts'
import { zshScript } from './zsh.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

const SCRIPTS: Readonly<Record<Shell, (program: CompletedProgram) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

export function isShell(text: string | undefined): text is Shell {
  return (SHELLS as readonly (string | undefined)[]).includes(text)
}

/**
 * Returns a script that completes the commands, options and values of a program. It has all of
 * them as text, so that a completion neither starts the program nor sends a request.
 */
export function completionScript(shell: Shell, program: CompletedProgram): string {
  return SCRIPTS[shell](program)
}
