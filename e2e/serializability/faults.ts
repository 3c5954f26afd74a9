/** Injects faults during a run, each at a position in the workload that the seed determines. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Application, type Invocation, mutation } from '../application.ts'
import { SeededRandom } from './random.ts'
import type { Store } from './stores.ts'

export interface FaultCounts {
  /** Number of kills of one runner process. */
  readonly runners: number
  /** Number of kills and restarts of the server, together with its runners. */
  readonly servers: number
  /** Number of kills and restarts of the store; 0 if the store is part of the server. */
  readonly stores: number
}

type Fault = keyof FaultCounts

export interface FaultOptions {
  readonly seed: number
  readonly transactions: number
  readonly counts: FaultCounts
  /** A Mutation without an effect, by which it is known that the server commits. */
  readonly probe: Invocation
}

export class Faults {
  readonly #app: Application
  readonly #store: Store
  readonly #probe: Invocation
  readonly #plan: { readonly at: number; readonly fault: Fault }[]
  readonly #done = { runners: 0, servers: 0, stores: 0 }
  #running: Promise<void> = Promise.resolve()

  constructor(app: Application, store: Store, { seed, transactions, counts, probe }: FaultOptions) {
    this.#app = app
    this.#probe = probe
    this.#store = store
    const random = new SeededRandom(seed, -1)
    // Not in the last tenth, so that the effects of a fault can appear.
    const position = () => random.below(Math.ceil(transactions * 0.9))
    const of = (fault: Fault) =>
      Array.from({ length: counts[fault] }, () => ({ at: position(), fault }))
    const plan = [...of('runners'), ...of('servers'), ...of('stores')]
    this.#plan = plan.sort((a, b) => a.at - b.at)
  }

  get done(): FaultCounts {
    return this.#done
  }

  /**
   * Called with the number of each transaction before it is sent. Faults run one after the other.
   */
  reach(number: number): void {
    while (this.#plan[0] !== undefined && this.#plan[0].at <= number) {
      const { fault } = this.#plan.shift()!
      this.#running = this.#running.then(() => this.#inject(fault))
      // `whenDone` rejects with the failure. Until then it must not count as unhandled.
      this.#running.catch(() => undefined)
    }
  }

  async whenDone(): Promise<void> {
    await this.#running
  }

  async #inject(fault: Fault): Promise<void> {
    if (fault === 'runners') await this.#killRunner()
    if (fault === 'servers') await this.#app.restart('kill')
    if (fault === 'stores') await this.#restartStore()
    this.#done[fault] += 1
  }

  async #restartStore(): Promise<void> {
    await this.#store.restart?.()
    // A server that ends with its store is started again, as a service manager would do.
    if ((await this.#stateAfterRestart()) === 'ended') await this.#app.start()
  }

  /** Waits until the server commits again or has ended, which takes time on a busy machine. */
  async #stateAfterRestart(): Promise<'serving' | 'ended'> {
    const ended = this.#app.server.ended.then(() => 'ended' as const)
    for (;;) {
      const serves = writes(this.#app, this.#probe).then((does) =>
        does ? ('serving' as const) : null,
      )
      const found = await Promise.race([ended, serves])
      if (found !== null) return found
      await delay(100)
    }
  }

  async #killRunner(): Promise<void> {
    // A runner is always starting: the group starts the next when the last one ends.
    for (let attempt = 0; attempt < 500; attempt++) {
      const [runner] = findRunners(this.#app)
      if (runner !== undefined) return void process.kill(runner, 'SIGKILL')
      await delay(10)
    }
    throw new Error('the server has no runner')
  }
}

/** Returns whether the Mutation is recorded. */
async function writes(app: Application, probe: Invocation): Promise<boolean> {
  const reply = mutation(app, probe)
  return reply.then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** Returns the runners of this installation's server, those with the most CPU time first. */
export function findRunners(app: Application): number[] {
  const directory = join(app.installation.directory, 'run')
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('svc-runner')) return []
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        const parent = /^PPid:\t(\d+)$/m.exec(status)?.[1]
        const isOwn = readlinkSync(`/proc/${parent}/cwd`) === directory
        return isOwn ? [{ pid: Number(pid), cpu: cpuTicks(pid) }] : []
      } catch {
        // The process has ended in the meantime.
        return []
      }
    })
    .sort((a, b) => b.cpu - a.cpu)
    .map(({ pid }) => pid)
}

/** Returns the CPU time of a process. A standby runner has used the least. */
function cpuTicks(pid: string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return Number(fields[11])
}
