/** The commands with which the server starts a runner, and a runner re-executes itself. */
import { resolve } from 'node:path'
import type { SelfCommand } from './sandbox/containment.ts'

export const RUNNER_ARGUMENT = '__runner'

/** Returns the program and its arguments; flags of runRunner may follow. */
export function runnerCommand(): string[] {
  return ownCommand(RUNNER_ARGUMENT)
}

/** Returns the command that starts this program with a first argument of its own. */
export function ownCommand(argument: string): string[] {
  return [program(), ...argumentsOf(argument).arguments]
}

export function selfCommand(): SelfCommand {
  return argumentsOf(RUNNER_ARGUMENT)
}

function argumentsOf(argument: string): SelfCommand {
  if (isCompiled()) return { arguments: [argument], sourceTrees: [] }
  const source = resolve(import.meta.dirname, '..')
  return { arguments: [resolve(source, 'main.ts'), argument], sourceTrees: [source] }
}

/** Tells whether this program is an executable that contains its own code. */
function isCompiled(): boolean {
  return /^(?:\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/.test(Bun.main)
}

/** Returns the program; on Linux a link to it, since an upgrade may have replaced the file. */
function program(): string {
  return process.platform === 'linux' ? '/proc/self/exe' : process.execPath
}
