/** More calls than a server can serve, while an operator reads the health of its components. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Application } from '../application.ts'
import { argv } from '../argv.ts'
import { run } from '../harness.ts'
import { memoryMib, serverPid } from '../slow-peers/attacks.ts'
import type { CrowdReport, CrowdTask } from './crowd.ts'
import { Probes } from './probes.ts'

const BUN = join(import.meta.dirname, '../../node_modules/.bin/bun')
const PAUSE_MILLIS = 50
/** The error code for an expired access token. */
export const EXPIRED = 'PLATFORM_AUTHENTICATION_FAILED'

/** A Query that computes for some tenths of a millisecond and is never served from a cache. */
const FUNCTIONS = `
import { query, v } from 'svc'
export const spin = query({
  clients: ['confidential'], arguments: { number: v.int64() }, returns: v.int64(),
  handler: (_ctx, { number }) => {
    let value = Number(number)
    for (let i = 0; i < 100_000; i++) value = (value * 31 + i) % 1_000_003
    return BigInt(value)
  },
})
`

export function writeWork(workspace: string): void {
  writeFileSync(join(workspace, 'functions/work.ts'), FUNCTIONS)
}

export interface OverloadReport {
  readonly sustainablePerSecond: number
  readonly crowd: CrowdReport
  /** Milliseconds of an operator's reads of the health. */
  readonly operator: { readonly reads: number; readonly p50: number; readonly p99: number }
  /** Number of health reads by the code of their error. */
  readonly failedReads: Readonly<Record<string, number>>
  readonly mibBefore: number
  readonly mibPeak: number
}

export interface Overload {
  /** Calls that begin per second, computed from those that were served per second before. */
  readonly perSecond: (sustainable: number) => number
  readonly seconds: number
  readonly connections: number
  /** Application Key of the calls. */
  readonly key: string
  /** Application Key of the calls before the overload, whose rate limit they never reach. */
  readonly unlimitedKey: string
}

/** Sends more calls than the server can serve, and prints the figures. */
export async function overload(
  app: Application,
  { key, unlimitedKey, connections, seconds, perSecond: perSecondOf }: Overload,
): Promise<OverloadReport> {
  const target = { origin: app.server.application!, key: unlimitedKey }
  const calm = { ...target, connections: 16, perSecond: null, seconds: 1 }
  // The first calls start runners and trigger the compilation of the code.
  await crowd({ ...calm, seconds: 0.3 })
  const sustainablePerSecond = Math.round((await crowd(calm)).accepted / calm.seconds)
  const pid = serverPid(app)
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const mibBefore = memoryMib(pid, 'VmRSS')
  const reader = new HealthReader(app)
  const perSecond = perSecondOf(sustainablePerSecond)
  const report = await crowd({ ...target, key, connections, seconds, perSecond })
  const read = await reader.stop()
  const result = {
    sustainablePerSecond,
    crowd: report,
    ...read,
    mibBefore,
    mibPeak: memoryMib(pid, 'VmHWM'),
  }
  process.stdout.write(`overload: ${JSON.stringify(result)}\n`)
  return result
}

/** Lets `svc` renew the access token if it has expired: it is valid for ten minutes. */
export async function renewToken({ svc, installation }: Application): Promise<void> {
  await svc(argv`health --remote --root ${installation.productRoot}`)
}

class HealthReader {
  readonly #app: Application
  readonly #probes: Probes
  readonly #running: Promise<void>
  readonly #millis: number[] = []
  readonly #failed: Record<string, number> = {}
  #isStopped = false

  constructor(app: Application) {
    this.#app = app
    this.#probes = new Probes(app)
    this.#running = this.#read()
  }

  async stop(): Promise<Pick<OverloadReport, 'operator' | 'failedReads'>> {
    this.#isStopped = true
    await this.#running
    const ascending = this.#millis.toSorted((a, b) => a - b)
    const at = (part: number) => Math.round(ascending[Math.floor(ascending.length * part)] ?? 0)
    const operator = { reads: ascending.length, p50: at(0.5), p99: at(0.99) }
    return { operator, failedReads: this.#failed }
  }

  async #read(): Promise<void> {
    while (!this.#isStopped) {
      const begun = performance.now()
      const health = await this.#probes.health()
      this.#millis.push(performance.now() - begun)
      const { all: code } = health
      if (code === EXPIRED) await renewToken(this.#app)
      else if (code !== undefined) this.#failed[code] = (this.#failed[code] ?? 0) + 1
      await delay(PAUSE_MILLIS)
    }
  }
}

async function crowd(task: CrowdTask): Promise<CrowdReport> {
  const path = join(import.meta.dirname, 'crowd.ts')
  const { status, stdout, stderr } = await run([BUN, path, JSON.stringify(task)])
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}
