/** Chooses the mode of `svc-server` by its argument; each mode loads only its own code. */
import { takesArguments } from './command-line/arguments.ts'
import { renderFailure } from './failures.ts'
import type { Mode, ProcessEnvironment, ServerIo } from './io.ts'

const MODES: ReadonlyMap<string, () => Promise<Mode>> = new Map([
  ['check', async () => (await import('./check.ts')).run],
  ['completion', async () => (await import('./command-line/completion.ts')).run],
  ['doctor', async () => (await import('./doctor/mode.ts')).run],
  ['migrate', async () => (await import('./migrate.ts')).run],
  ['ready', async () => (await import('./ready/ready.ts')).run],
  ['recover-bootstrap', async () => (await import('./recover-bootstrap.ts')).run],
  ['recover-owner', async () => (await import('./recover-owner.ts')).run],
  ['restore', async () => (await import('./restore/restore.ts')).run],
  ['rotate-keys', async () => (await import('./rotate-keys.ts')).run],
  ['serve', async () => (await import('./serve.ts')).run],
  ['setup', async () => (await import('./setup/setup.ts')).run],
  ['upgrade', async () => (await import('./upgrade/upgrade.ts')).run],
  ['verify-storage', async () => (await import('./verify-storage.ts')).run],
  ['version', async () => (await import('./version.ts')).run],
])
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['--version', 'version'],
  ['-V', 'version'],
])

/** Runs a mode. Returns the exit code: 0, 2 for wrong arguments, or that of the printed failure. */
export async function runServer(
  args: readonly string[],
  environment: ProcessEnvironment,
  io: ServerIo,
): Promise<number> {
  const { usage } = await import('./usage.ts')
  if (args.includes('--help') || args.includes('-h')) {
    io.out(usage())
    return 0
  }
  const [name = '', ...rest] = args
  const load = MODES.get(ALIASES.get(name) ?? name)
  if (load === undefined || !takesArguments(name, rest)) {
    if (name !== '') io.err(`svc-server: ${wrongUse(load === undefined)}\n\n`)
    io.err(usage())
    return 2
  }
  try {
    const run = await load()
    return await run(environment, io, rest)
  } catch (error) {
    const { text, exit } = renderFailure(error)
    io.err(text)
    return exit
  }
}

/** Returns the reason of a wrong use without the argument, which may be a pasted secret. */
function wrongUse(unknownMode: boolean): string {
  return unknownMode
    ? 'unknown mode'
    : 'the mode does not take these arguments; settings are variables'
}
