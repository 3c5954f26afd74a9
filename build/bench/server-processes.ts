/** The processes of the server that this process started: the server first, then its runners. */
import { spawnSync } from 'node:child_process'
import { assert } from '../../src/errors/assert.ts'

export interface ServerProcess {
  readonly rssKibibytes: number
  readonly cpuSeconds: number
}

export function serverProcesses(): readonly ServerProcess[] {
  const columns = 'pid=,ppid=,rss=,times=,comm='
  const { stdout } = spawnSync('ps', ['-A', '-o', columns], { encoding: 'utf8' })
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => /^(\d+) +(\d+) +(\d+) +(\d+) +(.*)$/.exec(line.trim())!)
    .map(([, pid, parent, rss, times, name]) => ({
      pid: Number(pid),
      parent: Number(parent),
      rssKibibytes: Number(rss),
      cpuSeconds: Number(times),
      name: name!,
    }))
  const below = (pid: number): typeof rows =>
    rows.filter(({ parent }) => parent === pid).flatMap((row) => [row, ...below(row.pid)])
  const server = below(process.pid).find(({ name }) => name.endsWith('svc-server'))
  assert(server !== undefined, 'the server is not among the processes')
  return [server, ...below(server.pid)]
}
