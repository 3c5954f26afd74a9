/** Dispatch on the program's name and its first argument; each branch loads only its own code. */
import { basename } from 'node:path'
import { RUNNER_ARGUMENT, selfCommand } from './runner/command.ts'

async function main(name: string, args: readonly string[]): Promise<void> {
  const [first, ...rest] = args
  if (first === RUNNER_ARGUMENT) {
    const { runRunner } = await import('./runner/main.ts')
    runRunner(selfCommand(), rest)
  } else if (name === 'svc-server') {
    process.exitCode = await server(args)
  } else if (name === 'svc') {
    const { runClient } = await import('./client/main.ts')
    const { processEnvironment } = await import('./client/environment.ts')
    process.exitCode = await runClient(args, processEnvironment(), async () => {
      const { workspaceTools } = await import('./dev/commands.ts')
      const { describeInSandbox } = await import('./dev/sandboxed-describe.ts')
      return workspaceTools({ describe: describeInSandbox })
    })
  } else if (first === 'svc-server' || first === 'svc') {
    // Under any other name, that of the runtime in development, the first argument decides.
    await main(first, rest)
  } else {
    process.stderr.write('Usage: svc <command> or svc-server <mode>; both have --help.\n')
    process.exitCode = 2
  }
}

async function server(args: readonly string[]): Promise<number> {
  // Nothing that the server creates is readable by others, whatever it was started with.
  process.umask(0o077)
  const { runServer } = await import('./server/modes.ts')
  const { Output } = await import('./server/outputs.ts')
  return runServer(args, process.env, {
    out: (text) => process.stdout.write(text),
    err: new Output(process.stderr).write,
    errIsTerminal: process.stderr.isTTY === true,
  })
}

await main(basename(process.argv0).replace(/\.exe$/i, ''), process.argv.slice(2))
