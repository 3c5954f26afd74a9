/**
 * Applies the desired state of the Environment: it serves while it is active and stops when it is
 * archived. The observed state follows the desired one: it is archived once the last call ended.
 */
import type { Engine } from '../../engine/engine.ts'
import type { Scheduler } from '../../engine/scheduling/scheduler.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { type Environment, findEnvironment } from '../../storage/control/environment.ts'
import type { Serving } from '../serving/serving.ts'

interface LifecycleOptions {
  readonly control: ControlDatabase
  readonly serving: Serving
  readonly engine: Pick<Engine, 'whenIdle'> & {
    readonly scheduler: Pick<Scheduler, 'wake'>
    readonly migrations: Pick<Engine['migrations'], 'wake'>
  }
}

export interface ObservedEnvironment {
  readonly revision: bigint
  readonly lifecycle: Environment['lifecycle']
}

export class Lifecycle {
  readonly #options: LifecycleOptions
  #observed: ObservedEnvironment
  #isActive: boolean

  constructor(options: LifecycleOptions) {
    this.#options = options
    const { configurationRevision, lifecycle } = options.control.read(findEnvironment)!
    this.#observed = { revision: configurationRevision, lifecycle }
    this.#isActive = lifecycle === 'active'
  }

  get observed(): ObservedEnvironment {
    return this.#observed
  }

  /** True while the Environment is to serve: only then may calls start. */
  get isActive(): boolean {
    return this.#isActive
  }

  /** Applies the stored state when the server starts, while no call is in flight. */
  start(): void {
    if (this.#observed.lifecycle === 'active') this.#options.serving.start()
  }

  /** Applies a change; call it after the commit, in the same turn of the event loop. */
  follow({ configurationRevision: revision, lifecycle }: Environment): void {
    const { serving, engine } = this.#options
    this.#isActive = lifecycle === 'active'
    if (lifecycle === 'active') {
      serving.start()
      engine.scheduler.wake()
      engine.migrations.wake()
    } else serving.stop()
    const applied = lifecycle === 'active' ? serving.whenIdle() : engine.whenIdle()
    void applied.then(() => {
      if (revision > this.#observed.revision) this.#observed = { revision, lifecycle }
    })
  }
}
