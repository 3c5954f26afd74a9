/**
 * Carries the desired state of the Environment out: it serves while it is active and stops when it
 * is archived. What is observed trails what is desired: it is archived once its last call ended.
 */
import type { ControlDatabase } from '../../storage/control/database.ts'
import { type Environment, findEnvironment } from '../../storage/control/environment.ts'
import type { ReleaseEngine } from '../product.ts'
import type { Serving } from '../serving/serving.ts'

interface LifecycleOptions {
  readonly control: ControlDatabase
  readonly serving: Serving
  readonly engine: Pick<ReleaseEngine, 'whenIdle'>
}

export interface ObservedEnvironment {
  readonly revision: bigint
  readonly lifecycle: Environment['lifecycle']
}

export class Lifecycle {
  readonly #options: LifecycleOptions
  #observed: ObservedEnvironment

  constructor(options: LifecycleOptions) {
    this.#options = options
    const { configurationRevision, lifecycle } = options.control.read(findEnvironment)!
    this.#observed = { revision: configurationRevision, lifecycle }
  }

  get observed(): ObservedEnvironment {
    return this.#observed
  }

  /** Of a server that starts: no call is left of the time before. */
  start(): void {
    if (this.#observed.lifecycle === 'active') this.#options.serving.start()
  }

  /** After a change is committed, in the same turn of the event loop. */
  follow({ configurationRevision: revision, lifecycle }: Environment): void {
    const { serving, engine } = this.#options
    if (lifecycle === 'active') serving.start()
    else serving.stop()
    const carriedOut = lifecycle === 'active' ? serving.settled() : engine.whenIdle()
    void carriedOut.then(() => {
      if (revision > this.#observed.revision) this.#observed = { revision, lifecycle }
    })
  }
}
