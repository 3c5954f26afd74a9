/** Dispatches on the program's name and its first argument; a branch loads only its own code. */
import { writeSync } from 'node:fs'
import { basename } from 'node:path'
import { TYPE_CHECK_ARGUMENT } from './dev/type-check/messages.ts'
import { RUNNER_ARGUMENT, selfCommand } from './runner/command.ts'
import { APPLICATION_PROCESS_ARGUMENT } from './server/application-processes/argument.ts'
import { REHEARSAL_ARGUMENT } from './server/backups/rehearsal-request.ts'
import { requireVerifiedPeers } from './system/peers.ts'
import { TEST_HOST_ARGUMENT } from './test-kit/argument.ts'

async function main(name: string, args: readonly string[]): Promise<void> {
  const [first, ...rest] = args
  if (first === RUNNER_ARGUMENT) {
    const { runRunner } = await import('./runner/main.ts')
    runRunner(selfCommand(), rest)
  } else if (first === APPLICATION_PROCESS_ARGUMENT) {
    await applicationProcess()
  } else if (first === REHEARSAL_ARGUMENT) {
    process.umask(0o077)
    const { runRehearsal } = await import('./server/backups/rehearsal-process.ts')
    await runRehearsal(Bun.stdin.stream(), (line) => writeSync(1, line))
    process.exit(0)
  } else if (first === TYPE_CHECK_ARGUMENT) {
    const { runTypeChecker } = await import('./dev/type-check/checker-process.ts')
    await runTypeChecker(rest[0]!)
  } else if (first === TEST_HOST_ARGUMENT) {
    const { runTestHost } = await import('./dev/test-host/test-host.ts')
    await runTestHost()
  } else if (name === 'svc-server') {
    await server(args)
  } else if (name === 'svc') {
    const { runClient } = await import('./client/main.ts')
    const { processEnvironment } = await import('./client/process-environment.ts')
    process.exitCode = await runClient(args, processEnvironment(), async () => {
      const { workspaceTools } = await import('./dev/workspace-tools.ts')
      const { describeInSandbox } = await import('./dev/building/sandboxed-describe.ts')
      const { startTypeChecker } = await import('./dev/type-check/type-check.ts')
      return workspaceTools({ describe: describeInSandbox, startTypeChecker })
    })
  } else if (first === 'svc-server' || first === 'svc') {
    // The program has another name, such as that of the runtime in development: the first argument
    // selects the program.
    await main(first, rest)
  } else {
    process.stderr.write('Usage: svc <command> or svc-server <mode>; both have --help.\n')
    process.exitCode = 2
  }
}

async function applicationProcess(): Promise<void> {
  process.umask(0o077)
  const { runApplicationProcess } = await import(
    './server/application-processes/application-process.ts'
  )
  const { Output } = await import('./server/outputs.ts')
  const [out, err] = [new Output(process.stdout), new Output(process.stderr)]
  const errIsTerminal = process.stderr.isTTY === true
  await runApplicationProcess({ out: out.write, err: err.write, errIsTerminal })
}

async function server(args: readonly string[]): Promise<never> {
  requireVerifiedPeers(process.env)
  // Files of the server are readable by its own user alone, under any umask that it inherits.
  process.umask(0o077)
  const { runServer } = await import('./server/modes.ts')
  const { Output } = await import('./server/outputs.ts')
  const [out, err] = [new Output(process.stdout), new Output(process.stderr)]
  const exit = await runServer(args, process.env, {
    out: out.write,
    err: err.write,
    errIsTerminal: process.stderr.isTTY === true,
  })
  await out.flushed()
  if (out.lost) err.write('svc-server: standard output could not be written\n')
  await err.flushed()
  // Exits explicitly: a database that does not respond, or an unread log, would keep the event
  // loop running for ever.
  process.exit(out.lost ? exit || 1 : exit)
}

await main(basename(process.argv0).replace(/\.exe$/i, ''), process.argv.slice(2))
