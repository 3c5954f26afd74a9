/** A shell that runs one command after another, as a reader of a document types them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment, Result } from '../harness.ts'

/** Samples have process substitutions, which only some shells know. */
export const SHELL = '/bin/bash'
/** Only a hang takes this long. */
const DEADLINE_MS = 600_000
const POLL_MS = 20

export interface TerminalOptions {
  /** The working directory of the first command. */
  readonly directory: string
  /** A directory for the files of the terminal. */
  readonly files: string
  readonly environment: Environment
}

export interface Running {
  readonly command: string
  output(): Result
  /** Interrupts the command and resolves with its result. */
  stop(): Promise<Result>
}

export class Terminal {
  readonly #shell: ChildProcess
  readonly #files: string
  #count = 0

  constructor({ directory, files, environment }: TerminalOptions) {
    this.#files = files
    // Job control gives each command in the background its own process group, which is interrupted.
    this.#shell = spawn(SHELL, ['--noprofile', '--norc'], {
      cwd: directory,
      env: environment,
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    this.#shell.stdin!.write('set -m\n')
  }

  /** Runs a command to its end. */
  async run(command: string): Promise<Result> {
    const files = this.#next()
    this.#write(`{ ${command}\n} </dev/null >'${files.stdout}' 2>'${files.stderr}'`, files.status)
    return await this.#ended(command, files)
  }

  /** Runs a command on a pseudo-terminal, at which `text` is typed until the command ends. */
  async type(command: string, text: string): Promise<Result> {
    const files = this.#next()
    writeFileSync(files.script, command)
    // What is typed while the command prepares its question is discarded.
    const typed = `while printf '%s\\n' '${text}' 2>/dev/null; do sleep 1; done`
    const terminal = `script -qec "${SHELL} '${files.script}'" /dev/null`
    this.#write(`${typed} | ${terminal} >'${files.stdout}' 2>'${files.stderr}'`, files.status)
    return await this.#ended(command, files)
  }

  /** Starts a command and resolves once its output has what `until` expects. */
  async start(command: string, until: RegExp): Promise<Running> {
    const files = this.#next()
    const job = `{ ${command}\n} </dev/null >'${files.stdout}' 2>'${files.stderr}'`
    this.#shell.stdin!.write(
      `{ ${job}; ${written('$?', files.status)}; } &\n${written('$!', files.group)}\n`,
    )
    const output = (): Result => resultOf(files)
    const isReady = () => until.test(output().stdout + output().stderr)
    await this.#wait(command, output, () => isReady() || existsSync(files.status))
    if (!isReady()) throw failure(command, output(), 'ended early')
    return {
      command,
      output,
      stop: async () => {
        process.kill(-Number(readFileSync(files.group, 'utf8')), 'SIGINT')
        return await this.#ended(command, files)
      },
    }
  }

  /** Ends the shell and what it started. */
  close(): void {
    this.#shell.stdin!.end('kill -KILL $(jobs -p) 2>/dev/null; exit\n')
  }

  #next() {
    const file = join(this.#files, `command-${++this.#count}`)
    return {
      stdout: `${file}.out`,
      stderr: `${file}.err`,
      status: `${file}.status`,
      group: `${file}.group`,
      script: `${file}.sh`,
    }
  }

  #write(text: string, status: string): void {
    this.#shell.stdin!.write(`${text}\n${written('$?', status)}\n`)
  }

  async #ended(command: string, files: Files): Promise<Result> {
    await this.#wait(
      command,
      () => resultOf(files),
      () => existsSync(files.status),
    )
    const status = Number(readFileSync(files.status, 'utf8'))
    const result = { ...resultOf(files), status }
    for (const file of Object.values(files)) rmSync(file, { force: true })
    return result
  }

  async #wait(command: string, output: () => Result, isDone: () => boolean): Promise<void> {
    const deadline = performance.now() + DEADLINE_MS
    while (!isDone()) {
      if (this.#shell.exitCode !== null) throw failure(command, output(), 'ended the shell')
      if (performance.now() > deadline) throw failure(command, output(), 'does not end')
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }
}

type Files = Readonly<Record<'stdout' | 'stderr' | 'status' | 'group' | 'script', string>>

/** Returns the command that writes a value to a file, which exists once it is whole. */
function written(value: string, file: string): string {
  return `echo ${value} >'${file}.part'; mv '${file}.part' '${file}'`
}

function resultOf({ stdout, stderr }: Files): Result {
  const read = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  return { status: null, stdout: read(stdout), stderr: read(stderr) }
}

function failure(command: string, { stdout, stderr }: Result, what: string): Error {
  return new Error(`${command}\n${what}:\n${stdout}${stderr}`)
}
