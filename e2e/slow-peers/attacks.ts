/** A served application under attack by slow and greedy clients, with measured normal calls. */
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, application, int64, query } from '../application.ts'
import { argv } from '../argv.ts'
import { run } from '../harness.ts'
import type { ClientReport, ClientTask } from './client.ts'

const ROOT = join(import.meta.dirname, '../..')
const BUN = join(ROOT, 'node_modules/.bin/bun')
const MIB = 1024 * 1024
export const ANSWER_BYTES = 7 * MIB
/** Number of credentials of the attackers. */
const KEYS = 6

const FUNCTIONS = `
import { query, v } from 'svc'
const clients = ['confidential'] as const
export const small = query({
  clients, arguments: { input: v.int64() }, returns: v.int64(),
  handler: (_ctx, { input }) => input + 1n,
})
export const take = query({
  clients, arguments: { input: v.array(v.any()) }, returns: v.int64(),
  handler: (_ctx, { input }) => BigInt(input.length),
})
export const long = query({
  clients, arguments: { input: v.int64() }, returns: v.string(),
  handler: (_ctx, { input }) => 'x'.repeat(Number(input)),
})
`

export interface Target {
  readonly app: Application
  readonly attackerKeys: readonly string[]
}

export async function openTarget(environment: Record<string, string> = {}): Promise<Target> {
  const app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/slow.ts'), FUNCTIONS)
  }, environment)
  const attackerKeys: string[] = []
  for (let i = 0; i < KEYS; i++) {
    const made = await app.svc(argv`
      credentials create --remote --root ${app.installation.productRoot}
      --client ${app.clientId} --name ${`attacker ${i}`} --scopes query
    `)
    attackerKeys.push(made.key)
  }
  // The result is computed before any attack, since that takes memory too.
  for (let i = 0; i < 2; i++) {
    await query(app, { function: 'slow.long', arguments: { input: int64(ANSWER_BYTES) } })
  }
  return { app, attackerKeys }
}

export interface Attack extends Pick<ClientTask, 'connections' | 'bytes' | 'seconds'> {
  readonly kind: 'bodies' | 'answers' | 'envelopes'
  /** Seconds in which normal calls are measured before the attack. */
  readonly quietSeconds: number
}

/** Memory of the server process in MiB, and durations of a normal client's calls. */
export interface Figures {
  readonly mibBefore: number
  readonly mibPeak: number
  readonly quiet: ClientReport
  readonly attacked: ClientReport
  readonly attack: ClientReport
}

/** Runs one attack beside normal calls and prints its figures. */
export async function attackOn({ app, attackerKeys }: Target, attack: Attack): Promise<Figures> {
  const origin = app.server.application!
  const calls = { kind: 'calls', origin, keys: [app.key], connections: 2, bytes: 0 } as const
  const { quietSeconds, ...task } = attack
  // The first calls start a runner and trigger the compilation of the code.
  await client({ ...calls, seconds: quietSeconds / 2 })
  const quiet = await client({ ...calls, seconds: quietSeconds })
  const pid = serverPid(app)
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const mibBefore = memoryMib(pid, 'VmRSS')
  const [attacked, report] = await Promise.all([
    client({ ...calls, seconds: task.seconds - 2 }),
    client({ ...task, origin, keys: attackerKeys }),
  ])
  const figures = { mibBefore, mibPeak: memoryMib(pid, 'VmHWM'), quiet, attacked, attack: report }
  process.stdout.write(`${attack.kind} ${JSON.stringify(figures)}\n`)
  return figures
}

function client(task: ClientTask): Promise<ClientReport> {
  return runClient('client.ts', task)
}

/**
 * Runs a program of this folder to its end, and returns its report. `onStderr`
 * receives its standard error.
 */
export async function runClient<T>(file: string, task: object, onStderr?: () => void): Promise<T> {
  const path = join(import.meta.dirname, file)
  const options = { ...(onStderr !== undefined && { onStderr }) }
  const { status, stdout, stderr } = await run([BUN, path, JSON.stringify(task)], options)
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Returns the PID of the server, the only one with the installation's directory as its own. */
export function serverPid({ installation }: Application): number {
  const directory = join(installation.directory, 'run')
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const [file, mode] = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      const isServer = file?.endsWith('/svc-server') && mode === 'serve'
      if (isServer && readlinkSync(`/proc/${name}/cwd`) === directory) return Number(name)
    } catch {
      // The process has ended in the meantime.
    }
  }
  throw new Error('the server does not run')
}

export function memoryMib(pid: number, field: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
  return Math.round((Number(kilobytes) * 1024) / MIB)
}

const TICK_MILLIS = 10

/** CPU time of a process since its start, in user and kernel mode. */
export function cpuMillis(pid: number): number {
  // The name of the program, which stands before these fields, contains no space.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_MILLIS
}
