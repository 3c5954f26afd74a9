/** Runs the programs of the quickstart and prints its progress. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

const started = performance.now()

/** Prints one line with the seconds since the start. */
export function say(text: string): void {
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  process.stdout.write(`${seconds.padStart(6)} s  ${text}\n`)
}

/** An error that the user can fix. It is shown without a stack trace. */
export class Problem extends Error {}

export interface Outcome {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program with exactly this environment. An abort of `signal` ends it early. */
export function runProgram(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Outcome> {
  const [file = '', ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: '/',
      env: { ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C must reach only this process, which then ends the child.
      detached: true,
    })
    const output = { stdout: '', stderr: '' }
    const end = (): void => {
      child.kill('SIGTERM')
    }
    signal.addEventListener('abort', end, { once: true })
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
      })
    }
    child.once('error', reject)
    child.once('close', (status) => {
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else resolve({ status: status ?? 128, ...output })
    })
  })
}

/** Runs `svc ARGS --json` and returns its document. Throws a Problem if it fails. */
export type Client = (...args: readonly string[]) => Promise<CommandOutput>

/** The fields of all commands that are read here. */
export interface CommandOutput {
  readonly key?: string | null
  readonly client?: { readonly clientId: string }
  readonly recipient?: string
}

export function clientAt(
  dist: string,
  environment: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Client {
  return async (...args) => {
    const command = [join(dist, 'svc'), ...args, '--json']
    const outcome = await runProgram(command, environment, signal)
    if (outcome.status === 0) return JSON.parse(outcome.stdout)
    const shown = `svc ${args.slice(0, 2).join(' ')}`
    throw new Problem(`${shown} exited with ${outcome.status}:\n${failureText(outcome)}`)
  }
}

function failureText({ stdout, stderr }: Outcome): string {
  try {
    const { error } = JSON.parse(stdout)
    return `  ${error.code}: ${error.message}\n  ${error.next}`
  } catch {
    return stderr || stdout
  }
}

/** Polls until the URL responds with status 200. */
export async function untilReady(url: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + 30_000
  for (;;) {
    signal.throwIfAborted()
    const response = await fetch(url, { signal }).catch(() => null)
    if (response?.status === 200) return
    if (performance.now() > deadline) throw new Problem(`${url} does not become ready`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Aborts at the first signal. Calls `force` at a signal of a later key press. */
export function stopRequests(force: () => void): AbortSignal {
  const controller = new AbortController()
  let first = 0
  // A terminal signals the whole group and npm forwards it: one key press is many signals.
  const samePressMillis = 1_000
  const stop = (): void => {
    if (first === 0) {
      first = performance.now()
      controller.abort(new Problem('stopped'))
    } else if (performance.now() - first > samePressMillis) force()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  // The parent process may have been killed without a signal to this one.
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent && first === 0) stop()
  }, 1_000).unref()
  return controller.signal
}
