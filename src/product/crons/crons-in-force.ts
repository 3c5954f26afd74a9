/**
 * Keeps the Crons in force that belong to what the Environment serves: those of the Release with
 * the greatest weight in the policy of environment:default, or, without a policy, those of Channel
 * `production`.
 */
import type { Engine } from '../../engine/engine.ts'
import type { CronPlan, PlannedCron } from '../../engine/scheduling/crons/crons.ts'
import { isFault } from '../../errors/fault.ts'
import { findChannel } from '../../storage/control/channels.ts'
import { findCronActivation } from '../../storage/control/cron-activations.ts'
import type { ControlDatabase, ControlReader } from '../../storage/control/database.ts'
import { findConvergedPolicy } from '../../storage/control/serving-policy.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { cronArguments } from '../../value/scheduling/cron-arguments.ts'
import type { LoadedRelease } from '../ports.ts'
import type { ReleaseCache } from '../releases/release-cache.ts'
import { heaviest } from '../targets.ts'

const CHANNEL = 'production'
/** Pause before a Release whose Crons could not be put in force is loaded again. */
const RETRY_MILLIS = 1_000

export interface CronsInForceOptions {
  readonly log: Logger
  readonly control: ControlDatabase
  readonly releases: Pick<ReleaseCache, 'load'>
  readonly engine: { readonly scheduler: Pick<Engine['scheduler'], 'crons'> }
  /**
   * The Channel whose Release has its Crons in force while there is no policy; `production` by
   * default.
   */
  readonly channel?: string | undefined
}

export class CronsInForce {
  /** The Channel whose Release has its Crons in force while there is no policy. */
  readonly channel: string
  readonly #options: CronsInForceOptions
  readonly #following: CoalescingTask
  #retry: ReturnType<typeof setTimeout> | null = null

  constructor(options: CronsInForceOptions) {
    this.channel = options.channel ?? CHANNEL
    this.#options = options
    this.#following = new CoalescingTask(
      () => this.#apply(),
      (error) => this.#fail(error),
    )
  }

  /** Returns the Release whose Crons are in force; null if nothing is served. */
  findRelease(reader: ControlReader): ReleaseId | null {
    const policy = findConvergedPolicy(reader)
    if (policy !== null) return heaviest(policy.releases)
    return findChannel(reader, this.channel)?.releaseId ?? null
  }

  /**
   * Puts the Crons of the Release that is served now in force, in the background. Call it after
   * every change of what is served.
   */
  follow(): void {
    this.#following.start()
  }

  /** Resolves once every change is applied and no run of a replaced Cron can start. */
  async whenIdle(): Promise<void> {
    await this.#following.whenIdle()
    await this.#options.engine.scheduler.crons.whenIdle()
  }

  async close(): Promise<void> {
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#following.close()
  }

  async #apply(): Promise<void> {
    const { log, control, releases, engine } = this.#options
    const releaseId = control.read((reader) => this.findRelease(reader))
    if (releaseId === null) engine.scheduler.crons.suspend()
    else {
      const release = await releases.load(releaseId)
      if (this.#following.isClosed) return
      engine.scheduler.crons.follow(this.#planOf(release))
      const count = release.manifest.crons?.length ?? 0
      log.info('cron.release_in_force', { releaseId, crons: count })
    }
  }

  #fail(error: unknown): void {
    this.#options.log.error('cron.release_failed', { error })
    // The Release was replaced and then retired; its replacement calls `follow`.
    if (isFault(error, 'PRODUCT_RELEASE_RETIRED') || this.#following.isClosed) return
    this.#retry = setTimeout(() => this.follow(), RETRY_MILLIS)
  }

  #planOf(release: LoadedRelease): CronPlan {
    const { control } = this.#options
    return {
      releaseId: release.releaseId,
      crons: plannedCrons(release),
      activationOf(name) {
        const found = control.read((reader) => findCronActivation(reader, name))
        return { revision: found.revision, isEnabled: found.activation === 'enabled' }
      },
    }
  }
}

/** Returns the Crons of a Release as the engine runs them. */
export function plannedCrons({
  manifest,
  functions,
}: Pick<LoadedRelease, 'functions'> & {
  readonly manifest: Pick<LoadedRelease['manifest'], 'crons'>
}): PlannedCron[] {
  return (manifest.crons ?? []).map((cron) => {
    const callee = functions.get(cron.function)!
    return {
      ...cron,
      // The parser of the manifest rejects a Cron that calls a Query.
      kind: callee.kind as PlannedCron['kind'],
      argumentsText: cronArguments(cron, callee),
    }
  })
}
