/** What goes wrong during a run: each fault at a place in the workload that the seed gives. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Application, mutation } from '../application.ts'
import { SeededRandom } from './random.ts'
import type { Store } from './stores.ts'

export interface FaultCounts {
  /** kill -9 of one process that runs Functions. */
  readonly runners: number
  /** kill -9 of the server, its runners with it, and a new start. */
  readonly servers: number
  /** kill -9 of the store and a new start; none where it lives in the server. */
  readonly stores: number
}

type Fault = keyof FaultCounts

export class Faults {
  readonly #app: Application
  readonly #store: Store
  readonly #plan: { readonly at: number; readonly fault: Fault }[]
  readonly #done = { runners: 0, servers: 0, stores: 0 }
  #running: Promise<void> = Promise.resolve()

  constructor(
    app: Application,
    store: Store,
    { seed, transactions, counts }: { seed: number; transactions: number; counts: FaultCounts },
  ) {
    this.#app = app
    this.#store = store
    const random = new SeededRandom(seed, -1)
    // Not in the last tenth: what a fault broke must have time to show.
    const place = () => random.below(Math.ceil(transactions * 0.9))
    const of = (fault: Fault) =>
      Array.from({ length: counts[fault] }, () => ({ at: place(), fault }))
    const plan = [...of('runners'), ...of('servers'), ...of('stores')]
    this.#plan = plan.sort((a, b) => a.at - b.at)
  }

  get done(): FaultCounts {
    return this.#done
  }

  /** Called with the number of each transaction before it is sent; faults wait for each other. */
  reach(number: number): void {
    while (this.#plan[0] !== undefined && this.#plan[0].at <= number) {
      const { fault } = this.#plan.shift()!
      this.#running = this.#running.then(() => this.#inject(fault))
      // Whoever waits for the faults sees the failure; until then it is not unhandled.
      this.#running.catch(() => undefined)
    }
  }

  async settled(): Promise<void> {
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
    // A server that stops over it is started again, as a service manager does.
    if ((await this.#howItTakesIt()) === 'ended') await this.#app.start()
  }

  /** It writes again, or has ended; on a machine that is busy either takes its time. */
  async #howItTakesIt(): Promise<'serving' | 'ended'> {
    const ended = this.#app.server.ended.then(() => 'ended' as const)
    for (;;) {
      const serves = writes(this.#app).then((does) => (does ? ('serving' as const) : null))
      const found = await Promise.race([ended, serves])
      if (found !== null) return found
      await delay(100)
    }
  }

  async #killRunner(): Promise<void> {
    // One is always on its way: the group starts the next when the last one ends.
    for (let attempt = 0; attempt < 500; attempt++) {
      const [runner] = runnersOf(this.#app)
      if (runner !== undefined) return void process.kill(runner, 'SIGKILL')
      await delay(10)
    }
    throw new Error('the server has no runner')
  }
}

/** Whether a Mutation that does nothing is recorded. */
async function writes(app: Application): Promise<boolean> {
  const nothing = { type: 'array', value: [] }
  const input = { operations: nothing, cells: nothing, aborts: { type: 'boolean', value: false } }
  const asked = mutation(app, { function: 'workload.run', arguments: input })
  return asked.then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** Processes that hold a Release, of this installation's server alone: other tests have theirs. */
function runnersOf(app: Application): number[] {
  const directory = join(app.of.directory, 'run')
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('svc-runner')) return []
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        const parent = /^PPid:\t(\d+)$/m.exec(status)?.[1]
        const isOurs = readlinkSync(`/proc/${parent}/cwd`) === directory
        return isOurs ? [{ pid: Number(pid), cpu: cpuTicks(pid) }] : []
      } catch {
        // It ended meanwhile.
        return []
      }
    })
    .sort((a, b) => b.cpu - a.cpu)
    .map(({ pid }) => pid)
}

/** The one that stands by has used the least. */
function cpuTicks(pid: string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return Number(fields[11])
}
