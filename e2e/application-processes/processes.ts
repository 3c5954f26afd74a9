/** The processes of a server, and which of them has accepted a connection. */
import type { Application } from '../application.ts'
import { findServer, kernelText, readDescendants, readDescriptors } from '../hostile/machine.ts'
import { Connection } from './connections.ts'

export interface Processes {
  readonly main: number
  readonly applications: readonly number[]
  /** Everything that the main process has started, directly or not. */
  readonly descendants: readonly number[]
}

export function processesOf({ installation }: Pick<Application, 'installation'>): Processes {
  const main = findServer(installation.directory)
  const descendants = readDescendants(main)
  const isApplication = ({ command }: { command: string }) =>
    command.includes('__application-process')
  return {
    main,
    applications: descendants.filter(isApplication).map(({ pid }) => pid),
    descendants: descendants.map(({ pid }) => pid),
  }
}

export function isRunning(pid: number): boolean {
  const state = /^State:\t(.)/m.exec(kernelText(`/proc/${pid}/status`) ?? '')?.[1]
  return state !== undefined && state !== 'Z'
}

/** Returns the process that has accepted the connection; null before it was accepted. */
export function acceptedBy(
  pids: readonly number[],
  origin: string,
  clientPort: number,
): number | null {
  const ends = [Number(new URL(origin).port), clientPort].map((port) =>
    port.toString(16).toUpperCase().padStart(4, '0'),
  )
  const lines = kernelText('/proc/net/tcp')!.trim().split('\n').slice(1)
  const found = lines
    .map((line) => line.trim().split(/\s+/))
    .find(([, local, remote]) => local?.endsWith(`:${ends[0]}`) && remote?.endsWith(`:${ends[1]}`))
  const socket = `socket:[${found?.[9]}]`
  return pids.find((pid) => Object.values(readDescriptors(pid)).includes(socket)) ?? null
}

export interface OwnedConnection {
  readonly connection: Connection
  readonly pid: number
}

/** Only a process that never listens takes longer. */
const CONNECT_MILLIS_MAX = 60_000

/** Opens connections until each application process has accepted `count` of them. */
export async function connectToAll(
  app: Pick<Application, 'installation' | 'server'>,
  count: number,
): Promise<OwnedConnection[]> {
  const { applications } = processesOf(app)
  const origin = app.server.application!
  const kept: OwnedConnection[] = []
  const of = (pid: number) => kept.filter((each) => each.pid === pid).length
  const until = performance.now() + CONNECT_MILLIS_MAX
  while (performance.now() < until) {
    if (applications.every((pid) => of(pid) === count)) return kept
    const connection = await Connection.open(origin)
    // Its answer tells that the connection was accepted.
    await connection.send('GET', '/healthz', 'none', '')
    const pid = acceptedBy(applications, origin, connection.localPort)
    if (pid !== null && of(pid) < count) kept.push({ connection, pid })
    else {
      connection.close()
      await Bun.sleep(1)
    }
  }
  throw new Error(`the processes ${applications} did not accept ${count} connections each`)
}
