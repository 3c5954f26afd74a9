/** Measures calls of one caller: how much slower the slowest are, and system calls. Linux only. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call } from '../calls.ts'
import type { Figure, Side } from '../figure.ts'
import type { Target } from '../installation.ts'
import { serverProcesses } from '../server-processes.ts'
import { fillTable, readItem } from '../tables.ts'
import { bareServer, CREATE, compareServers, GET, LIST, type Request } from './calls.ts'

const TRACED_CALLS = 1_000

export const ONE_CALLER: readonly Figure[] = [
  tail('get', GET),
  tail('list', LIST),
  tail('create', CREATE),
  {
    name: 'system calls of a get of one caller',
    baseline: 'of a bare route',
    ratioMin: 0.3,
    documents: 'sqlite',
    measure: async (installation) => {
      await fillTable(installation, 'items')
      const to = installation.application
      const bare = await bareServer(to, GET)
      const trace = (target: Target, path: '/bare' | '/v1/query', pids: readonly number[]) => {
        const log = join(installation.directory, 'system-calls')
        return systemCalls(pids, log, () => call(target, path, readItem()))
      }
      try {
        const pids = serverProcesses().map(({ pid }) => pid)
        const candidate = await trace(to, '/v1/query', pids)
        const baseline = await trace({ ...to, port: bare.port }, '/bare', [bare.pid])
        return {
          ratio: baseline / candidate,
          candidate: sideOf(candidate),
          baseline: sideOf(baseline),
          failure: null,
        }
      } finally {
        bare.stop()
      }
    },
  },
]

/** The baseline's p99 shows how much of the tail is of the machine. */
function tail(name: string, request: Request): Figure {
  return {
    name: `p99 of one caller, ${name}`,
    baseline: '4 times p50 + 1 ms; beside a bare route',
    ratioMin: 1,
    documents: 'sqlite',
    measure: async (installation, options) => {
      await fillTable(installation, 'items')
      const to = installation.application
      const baseline = await bareServer(to, request)
      const measured = await compareServers({ to, request, baseline, connections: 1 }, options)
      const { p50Micros, p99Micros } = measured.candidate
      return { ...measured, ratio: (4 * p50Micros! + 1_000) / p99Micros! }
    },
  }
}

/** Returns how many system calls the processes make for each of the calls. */
async function systemCalls(
  pids: readonly number[],
  log: string,
  one: () => Promise<unknown>,
): Promise<number> {
  const attached = pids.flatMap((pid) => ['-p', String(pid)])
  const strace = spawn('strace', ['-f', '-c', '-o', log, ...attached], { stdio: 'pipe' })
  await Promise.race([once(strace.stderr, 'data'), once(strace, 'close')])
  for (let i = 0; i < TRACED_CALLS; i++) await one()
  strace.kill('SIGINT')
  await once(strace, 'close')
  // Share, seconds and microseconds a call stand before the number of calls.
  const [, calls] = /^100\.00 +\S+ +\S+ +(\d+) .*total$/m.exec(readFileSync(log, 'utf8'))!
  return Number(calls) / TRACED_CALLS
}

function sideOf(calls: number): Side {
  return { value: calls.toFixed(1), p50Micros: null, p99Micros: null }
}
