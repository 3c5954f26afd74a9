/**
 * Steps of a setup as data: what is printed before the question and by a dry run is what runs
 * afterwards. A step says whether it is already done, so that a second run continues after the last
 * completed one.
 */
import { Fault } from '../../errors/fault.ts'
import { shellQuoted } from '../../value/shell/shell-words.ts'
import type { CommandResult, Machine, PlannedFile } from './machine.ts'

/** A condition that becomes true without a change by the setup. */
export interface Wait {
  /** Completes the sentence "wait until ...". */
  readonly until: string
  readonly holds: () => Promise<boolean>
}

export type Action =
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly accepts?: number }
  | { readonly kind: 'file'; readonly file: PlannedFile }
  | { readonly kind: 'wait'; readonly wait: Wait }

export interface Step {
  /** An imperative sentence without a full stop. */
  readonly title: string
  /** Only reads. Throws SERVER_SETUP_UNSUPPORTED where the step must not run. */
  readonly isDone: () => Promise<boolean>
  readonly actions: readonly Action[]
  /** The next step of the operator where this one fails. */
  readonly ifItFails: string
}

export interface SurveyedStep {
  readonly step: Step
  readonly isDone: boolean
}

/** Time that a condition may need, such as the start of PostgreSQL on a slow disk. */
const WAIT_MILLIS_MAX = 120_000
const WAIT_INTERVAL_MILLIS = 250
const LINES_OF_FAILURE = 15

export function command(...argv: readonly string[]): Action {
  return { kind: 'command', argv }
}

/** A command whose exit code `accepts` is a success too. */
export function commandThatMay(accepts: number, ...argv: readonly string[]): Action {
  return { kind: 'command', argv, accepts }
}

export function writeFile(file: PlannedFile): Action {
  return { kind: 'file', file }
}

export function waitUntil(until: string, holds: Wait['holds']): Action {
  return { kind: 'wait', wait: { until, holds } }
}

/** Asks each step whether it is done. */
export async function surveySteps(steps: readonly Step[]): Promise<SurveyedStep[]> {
  const surveyed: SurveyedStep[] = []
  for (const step of steps) surveyed.push({ step, isDone: await step.isDone() })
  return surveyed
}

/** Describes the steps with every command and every file, as lines. */
export function describeSteps(surveyed: readonly SurveyedStep[]): string {
  return surveyed
    .map(({ step, isDone }, i) => {
      const head = `${String(i + 1).padStart(3)}. ${step.title}`
      if (isDone) return `${head}: already done\n`
      return [head, ...step.actions.flatMap(describeAction)].join('\n       ').concat('\n')
    })
    .join('')
}

function describeAction(action: Action): string[] {
  if (action.kind === 'command') return [commandLine(action.argv)]
  if (action.kind === 'wait') return [`wait until ${action.wait.until}`]
  const { path, group, mode, isSecret, keepsContent, content } = action.file
  const owner = group === null ? 'root' : `root:${group}`
  const head = `write ${shellQuoted(path)} (${owner}, ${mode.toString(8).padStart(4, '0')})`
  if (isSecret) return [`${head}, a secret that is not printed`]
  if (!keepsContent) return [head]
  const lines = content()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  return [head, ...lines.map((line) => `    ${line}`)]
}

/** Returns the command as a user would type it. Nothing is run through a shell. */
export function commandLine(argv: readonly string[]): string {
  return argv.map((word) => (word === '' ? "''" : shellQuoted(word))).join(' ')
}

export interface RunOptions {
  readonly machine: Machine
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Milliseconds that a condition may need; WAIT_MILLIS_MAX by default. */
  readonly waitMillis?: number
}

/**
 * Runs the steps that are not done, in order, and checks the result of each. Throws
 * SERVER_SETUP_FAILED at the first one that fails; those before it stay done.
 */
export async function runSteps(steps: readonly Step[], options: RunOptions): Promise<void> {
  for (const [i, step] of steps.entries()) {
    const label = `[${i + 1}/${steps.length}] ${step.title}`
    if (await step.isDone()) {
      options.out(`${label}: already done\n`)
      continue
    }
    options.out(`${label}\n`)
    for (const action of step.actions) await perform(step, action, options)
    if (!(await step.isDone())) {
      throw failed(step, 'its commands succeeded, and their result is missing', options)
    }
  }
}

async function perform(step: Step, action: Action, options: RunOptions): Promise<void> {
  for (const line of describeAction(action).slice(0, 1)) options.out(`      ${line}\n`)
  if (action.kind === 'wait') {
    if (await becomesTrue(action.wait, options.waitMillis ?? WAIT_MILLIS_MAX)) return
    throw failed(step, `waited in vain until ${action.wait.until}`, options)
  }
  if (action.kind === 'file') {
    try {
      await options.machine.write(action.file)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw failed(step, `${action.file.path} cannot be written: expected ${reason}`, options)
    }
    return
  }
  const result = await options.machine.run(action.argv)
  if (result.status === 0 || result.status === action.accepts) return
  throw failed(step, `${commandLine(action.argv)} ${howItEnded(result)}`, options, result.output)
}

function howItEnded({ status }: CommandResult): string {
  if (status === null) return 'did not end in time'
  return status === 127 ? 'is not installed' : `ended with exit code ${status}`
}

function failed(step: Step, reason: string, { err }: RunOptions, output = ''): Fault {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  err(
    [
      `\nThe step "${step.title}" failed: ${reason}.`,
      ...lines.slice(-LINES_OF_FAILURE).map((line) => `    ${printable(line)}`),
      step.ifItFails,
      'The steps before it are done. Run the same command again to continue here.\n\n',
    ].join('\n'),
  )
  return new Fault('SERVER_SETUP_FAILED', { detail: step.title })
}

/** Removes what a program could use to control the terminal. */
function printable(line: string): string {
  return line.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]+/g, ' ').slice(0, 400)
}

async function becomesTrue({ holds }: Wait, millis: number): Promise<boolean> {
  const end = performance.now() + millis
  for (;;) {
    if (await holds()) return true
    if (performance.now() > end) return false
    await new Promise((resolve) => setTimeout(resolve, WAIT_INTERVAL_MILLIS))
  }
}
