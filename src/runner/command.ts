/** How the server starts a runner, and a runner itself again. */
import { resolve } from 'node:path'
import type { SelfCommand } from './sandbox/containment.ts'

export const RUNNER_ARGUMENT = '__runner'

/** Program and arguments; flags of runRunner may follow. */
export function runnerCommand(): string[] {
  return [program(), ...selfCommand().arguments]
}

export function selfCommand(): SelfCommand {
  if (isCompiled()) return { arguments: [RUNNER_ARGUMENT], sourceTrees: [] }
  const source = resolve(import.meta.dirname, '..')
  return { arguments: [resolve(source, 'main.ts'), RUNNER_ARGUMENT], sourceTrees: [source] }
}

/** Whether this program is an executable that carries its own code. */
function isCompiled(): boolean {
  return /^(?:\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/.test(Bun.main)
}

/** The link, since an upgrade may have replaced the file by another version's. */
function program(): string {
  return process.platform === 'linux' ? '/proc/self/exe' : process.execPath
}
