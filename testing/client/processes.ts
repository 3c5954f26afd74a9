/** Runs the client in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import type { TestClient } from './test-client.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')

export interface Finished {
  readonly exit: number | null
  readonly out: string
  readonly err: string
}

/**
 * Runs the client with `client.variables` as its whole environment. `whenStarted` may send signals
 * to it. `stdout` may be a file descriptor for its results.
 */
export function runProcess(
  client: TestClient,
  argv: readonly string[],
  whenStarted: (child: ChildProcess) => void = () => {},
  stdout: number | 'pipe' = 'pipe',
): Promise<Finished> {
  const child = spawn(process.execPath, [MAIN, 'svc', ...argv], {
    cwd: client.home,
    env: client.variables,
    stdio: ['ignore', stdout, 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk) => {
    out += chunk
  })
  child.stderr?.on('data', (chunk) => {
    err += chunk
  })
  whenStarted(child)
  return new Promise((resolve) => child.on('close', (exit) => resolve({ exit, out, err })))
}
