/**
 * Runs a child process that cannot outlive this one: a shell beside it waits on a pipe that the
 * kernel closes when this process ends, even by SIGKILL, and then asks the child to stop.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

export interface Supervised {
  /** The process group of the child, its descendants and the shell beside it. */
  readonly processGroup: number
  readonly stdout: Readable
  readonly stderr: Readable
  /**
   * Exit status of the child; 128 plus the number of the signal that ended it. Resolves once the
   * child, and all that it started with its output, has given up its sockets and locks.
   */
  readonly ended: Promise<number>
  /** Sends the stop signal to the child and waits for its end. */
  stop(): Promise<number>
  /** Kills the child and everything that it started. */
  kill(): void
}

export interface SuperviseOptions {
  readonly uid?: number
  readonly gid?: number
  /** The signal that stops this child. */
  readonly signal: 'INT' | 'TERM'
  readonly directory: string
  readonly environment: Readonly<Record<string, string>>
}

const SCRIPT = [
  'signal=$1',
  'shift',
  'exec 3<&0',
  '"$@" </dev/null 3<&- &',
  'child=$!',
  "trap '' INT TERM HUP",
  // A child that is stopped acts on the signal once it continues.
  '{ read -r _ <&3; kill -$signal $child; kill -CONT $child; } 2>/dev/null &',
  'exec 3<&-',
  'wait $child',
].join('\n')

export function superviseProcess(
  command: readonly string[],
  options: SuperviseOptions,
): Supervised {
  const { signal, directory, environment, ...account } = options
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', signal, ...command], {
    ...account,
    cwd: directory,
    // In its own process group: Ctrl-C must reach only this process, which stops things in order.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: environment,
  })
  const { stdin, stdout, stderr } = shell
  if (stdin === null || stdout === null || stderr === null) throw new Error('no pipes')
  stdin.on('error', () => undefined)
  stdout.setEncoding('utf8')
  stderr.setEncoding('utf8')
  const ended = new Promise<number>((resolve) => {
    shell.once('error', () => resolve(127))
    shell.once('exit', () => {
      stdin.end()
      // Output without a reader would keep the streams open.
      for (const stream of [stdout, stderr]) stream.resume()
    })
    // The streams close with the last process that has them. A killed child with much memory ends
    // up to a second after the shell, and holds its sockets and locks until then.
    shell.once('close', (code) => resolve(code ?? 128))
  })
  return {
    processGroup: shell.pid ?? -1,
    stdout,
    stderr,
    ended,
    stop: () => {
      stdin.end()
      return ended
    },
    kill: () => killGroup(shell),
  }
}

function killGroup(shell: ChildProcess): void {
  if (shell.pid === undefined) return
  try {
    process.kill(-shell.pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
}
