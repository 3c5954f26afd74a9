/**
 * `svc-server setup`: brings PostgreSQL, the service user, settings, secrets and the service to
 * this machine. One list of steps is printed, confirmed and run, and continued by the next run.
 */
import { isFault } from '../../errors/fault.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'
import { run as askServer } from '../ready/ready.ts'
import { parseSetupArguments, type SetupArguments } from './arguments.ts'
import { unsupported } from './faults.ts'
import { Machine } from './machine.ts'
import { planInstallation } from './plan.ts'
import { detectPlatform } from './platforms.ts'
import { removalSteps } from './service.ts'
import { readEnvironment } from './settings-files.ts'
import { describeSteps, runSteps, type Step, surveySteps } from './steps.ts'
import { installationSummary, removalSummary } from './summary.ts'
import { askOnTerminal } from './terminal.ts'

/** The exit code where the operator did not agree. */
const DECLINED = 1
const NO_TERMINAL = 2

export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const parsed = parseSetupArguments(args)
  if (parsed === null) return 2
  const isRoot = process.geteuid?.() === 0
  const machine = new Machine({ environment, executable: lastingPath(process.execPath), isRoot })
  const isServing = () => answers(machine)
  return await setUp(parsed, { machine, io, isServing, ask: askOnTerminal })
}

export interface SetupParts {
  readonly machine: Machine
  readonly io: Pick<ServerIo, 'out' | 'err'>
  readonly isServing: () => Promise<boolean>
  /** Returns null without a terminal to ask on. */
  readonly ask: (question: string) => boolean | null
  /** Milliseconds that a program may need to answer; tests shorten it. */
  readonly waitMillis?: number
}

/** Throws SERVER_SETUP_UNSUPPORTED and SERVER_SETUP_FAILED. */
export async function setUp(args: SetupArguments, parts: SetupParts): Promise<number> {
  const { machine, io, isServing } = parts
  const platform = detectPlatform(machine)
  if (args.action === 'uninstall') {
    const steps = await removalSteps(machine, platform)
    const exit = await confirmAndRun(steps, args, parts)
    if (exit === 0 && !args.isDryRun) io.out(await removalSummary(machine, platform))
    return exit
  }
  const { steps, notes } = await planInstallation(machine, platform, args, { isServing })
  for (const note of notes) io.out(`${note}\n`)
  const exit = await confirmAndRun(steps, args, parts)
  if (exit === 0 && !args.isDryRun) {
    io.out(installationSummary(machine, platform, await isServing()))
  }
  return exit
}

async function confirmAndRun(
  steps: readonly Step[],
  args: SetupArguments,
  { machine, io, ask, waitMillis }: SetupParts,
): Promise<number> {
  const surveyed = await surveySteps(steps)
  const isDone = surveyed.every((each) => each.isDone)
  io.out(isDone ? 'Everything is done already:\n' : 'These steps change this machine:\n')
  io.out(`${describeSteps(surveyed)}\n`)
  if (args.isDryRun) {
    io.out('This was a dry run: nothing was changed.\n')
    return 0
  }
  if (isDone) return 0
  if (!machine.isRoot) throw unsupported('The setup needs root: run the same command with sudo')
  if (!args.isConfirmed) {
    const answer = ask('Continue? [y/N] ')
    if (answer === null) {
      io.err('svc-server: There is no terminal to ask on. Add --yes to run these steps.\n')
      return NO_TERMINAL
    }
    if (!answer) {
      io.out('Nothing was changed.\n')
      return DECLINED
    }
  }
  await runSteps(steps, { machine, out: io.out, err: io.err, ...(waitMillis && { waitMillis }) })
  return 0
}

/** Homebrew keeps each version in a directory of its own, and the newest one at a second path. */
export function lastingPath(executable: string): string {
  return executable.replace(/\/Cellar\/([^/]+)\/[^/]+\//, '/opt/$1/')
}

/** Asks the server at the addresses in the settings of the service. */
async function answers(machine: Machine): Promise<boolean> {
  const settings = readEnvironment(machine)
  if (settings === null) return false
  try {
    return (await askServer(settings, { out: () => {}, err: () => {}, errIsTerminal: false })) === 0
  } catch (error) {
    if (isFault(error)) return false
    throw error
  }
}
