/** The processes of the server that this process started: the server first, then its runners. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { assert } from '../src/errors/assert.ts'

export interface ServerProcess {
  readonly pid: number
  readonly rssKibibytes: number
}

/** Linux shows 100 ticks a second to programs, independent of the frequency of its kernel. */
const TICK_MILLIS = 10

export function serverProcesses(): readonly ServerProcess[] {
  const columns = 'pid=,ppid=,rss=,comm='
  const { stdout } = spawnSync('ps', ['-A', '-o', columns], { encoding: 'utf8' })
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => /^(\d+) +(\d+) +(\d+) +(.*)$/.exec(line.trim())!)
    .map(([, pid, parent, rss, name]) => ({
      pid: Number(pid),
      parent: Number(parent),
      rssKibibytes: Number(rss),
      name: name!,
    }))
  const below = (pid: number): typeof rows =>
    rows.filter(({ parent }) => parent === pid).flatMap((row) => [row, ...below(row.pid)])
  const server = below(process.pid).find(({ name }) => name.endsWith('svc-server'))
  assert(server !== undefined, 'the server is not among the processes')
  return [server, ...below(server.pid)]
}

/**
 * Returns the CPU time of the server and of its runners since the start of the server, those that
 * have ended included. Linux only.
 */
export function serverCpuMillis(): number {
  const [server, ...runners] = serverProcesses()
  const ticks = ticksOf(server!.pid, { withEnded: true })
  return TICK_MILLIS * runners.reduce((sum, { pid }) => sum + ticksOf(pid), ticks)
}

/** Returns the ticks of a process, and of the children that it waited for. */
function ticksOf(pid: number, { withEnded = false } = {}): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program, in parentheses, may have blanks. The state follows, as field 3.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15)
  return user! + system! + (withEnded ? endedUser! + endedSystem! : 0)
}
