/**
 * Keeps the Crons in force that belong to what the Environment serves: those of the Release with
 * the greatest weight in the policy of environment:default, or, without a policy, those of Channel
 * `production`.
 */
import type { CronPlan, PlannedCron } from '../../engine/scheduling/crons/crons.ts'
import type { Engine } from '../../engine/engine.ts'
import { isFault } from '../../errors/fault.ts'
import { findChannel } from '../../storage/control/channels.ts'
import { findCronActivation } from '../../storage/control/cron-activations.ts'
import type { ControlDatabase, ControlReader } from '../../storage/control/database.ts'
import { findConvergedPolicy } from '../../storage/control/serving-policy.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { cronArguments } from '../../value/scheduling/cron-arguments.ts'
import type { LoadedRelease, ReleaseCache } from '../releases/release-cache.ts'
import { heaviest } from '../serving/targets.ts'

const CHANNEL = 'production'
const RETRY_MILLIS = 1_000

export interface CronsInForceOptions {
  readonly log: Logger
  readonly control: ControlDatabase
  readonly releases: Pick<ReleaseCache, 'load'>
  readonly engine: { readonly scheduler: Pick<Engine['scheduler'], 'crons'> }
}

/** Returns the Release whose Crons are in force; null where nothing is served. */
export function findReleaseInForce(reader: ControlReader): ReleaseId | null {
  const policy = findConvergedPolicy(reader)
  if (policy !== null) return heaviest(policy.releases)
  return findChannel(reader, CHANNEL)?.releaseId ?? null
}

export class CronsInForce {
  readonly #options: CronsInForceOptions
  #releaseId: ReleaseId | null = null
  #following: Promise<void> | null = null
  #followsAgain = false
  #retry: ReturnType<typeof setTimeout> | null = null
  #isClosed = false

  constructor(options: CronsInForceOptions) {
    this.#options = options
  }

  /** Puts the Crons of what is served now in force. Call it after every change of that. */
  follow(): void {
    if (this.#isClosed) return
    if (this.#following !== null) {
      this.#followsAgain = true
      return
    }
    this.#followsAgain = false
    this.#following = this.#apply().finally(() => {
      this.#following = null
      if (this.#followsAgain) this.follow()
    })
  }

  /** Resolves once no change is being followed. */
  async whenIdle(): Promise<void> {
    while (this.#following !== null) await this.#following
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.whenIdle()
  }

  async #apply(): Promise<void> {
    const { log, control, releases, engine } = this.#options
    const releaseId = control.read(findReleaseInForce)
    if (releaseId === this.#releaseId) return
    const { crons } = engine.scheduler
    try {
      if (releaseId === null) crons.suspend()
      else {
        const release = await releases.load(releaseId)
        if (this.#isClosed) return
        crons.follow(this.#planOf(release))
        const count = release.manifest.crons?.length ?? 0
        log.info('cron.release_in_force', { releaseId, crons: count })
      }
      this.#releaseId = releaseId
    } catch (error) {
      log.error('cron.release_failed', { releaseId, error })
      // A Release that is gone was replaced, which is followed by itself.
      if (isFault(error, 'PRODUCT_RELEASE_RETIRED') || this.#isClosed) return
      this.#retry = setTimeout(() => this.follow(), RETRY_MILLIS)
    }
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

function plannedCrons({ manifest, functions }: LoadedRelease): PlannedCron[] {
  return (manifest.crons ?? []).map((cron) => {
    const callee = functions.get(cron.function)!
    return {
      ...cron,
      // The manifest was checked when it was read.
      kind: callee.kind as PlannedCron['kind'],
      argumentsText: cronArguments(cron, callee),
    }
  })
}
