/** Runs other programs: a list of arguments and no shell, bounded in time and in output. */
import { spawn } from 'node:child_process'
import type { Secret } from '../../value/secret.ts'
import type { ClientEnvironment } from '../environment.ts'

const OUTPUT_BYTES_MAX = 256 * 1024
const TIMEOUT_MS = 30_000

/** A user by the numbers of the system. */
export interface User {
  readonly uid: number
  readonly gid: number
}

export interface ProgramOptions {
  /** Variables besides PATH and HOME; the program inherits no others. */
  readonly variables?: Readonly<Record<string, Secret | string>>
  /** The user that runs it; null for that of this process. */
  readonly user?: User | null
  readonly timeoutMs?: number
  /** The name that the program sees as its own; that of its file where absent. */
  readonly name?: string
  readonly signal?: AbortSignal
}

export interface Ended {
  /** Null for a program that does not exist, that a signal ended, or that took too long. */
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export type Run = (
  command: readonly [string, ...string[]],
  options?: ProgramOptions,
) => Promise<Ended>

/** Returns a `Run` with the PATH of the environment; it never rejects. */
export function programRunner(environment: Pick<ClientEnvironment, 'variable'>): Run {
  const inherited = ['PATH', 'HOME'].flatMap((name) => {
    const value = environment.variable(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  return (command, options = {}) => runBounded(command, Object.fromEntries(inherited), options)
}

function runBounded(
  [file, ...args]: readonly [string, ...string[]],
  inherited: Readonly<Record<string, string>>,
  options: ProgramOptions,
): Promise<Ended> {
  const { variables = {}, user = null, timeoutMs = TIMEOUT_MS, name, signal } = options
  const given = Object.entries(variables).map(
    ([name, value]) => [name, typeof value === 'string' ? value : value.reveal()] as const,
  )
  return new Promise((resolve) => {
    const ended = { stdout: '', stderr: '' }
    const child = spawn(file, args, {
      cwd: '/',
      env: { LC_ALL: 'C', ...inherited, ...Object.fromEntries(given) },
      stdio: ['ignore', 'pipe', 'pipe'],
      // An interrupt of the terminal must not reach a restart that is under way.
      detached: true,
      ...(user !== null && user),
      ...(name !== undefined && { argv0: name }),
      ...(signal !== undefined && { signal }),
    })
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        if (ended[stream].length < OUTPUT_BYTES_MAX) ended[stream] += text
      })
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    const finish = (status: number | null): void => {
      clearTimeout(timer)
      resolve({ status, ...ended })
    }
    child.once('error', () => finish(null))
    child.once('close', (status) => finish(status))
  })
}
