/**
 * Validation makes a published Release servable: its code is loaded inside the sandbox and compared
 * with its manifest, then with what a Channel serves, then its indexes are built. Only a defect of
 * its own rejects it for good.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { findChannel } from '../../storage/control/channels.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import {
  findRelease,
  markReleaseDecided,
  type ReleaseCheck,
  type ReleaseRecord,
  type ReleaseState,
} from '../../storage/control/releases.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import {
  codeChecks,
  compatibilityChecks,
  incompatible,
  isFailed,
  loadFailure,
} from '../compatibility/release-checks.ts'
import type { Product } from '../product.ts'
import type { LoadedRelease } from './release-cache.ts'

export interface Validated {
  readonly releaseId: ReleaseId
  readonly state: ReleaseState
  readonly checks: readonly ReleaseCheck[]
  readonly validatedAtMicros: bigint
}

export interface ValidateInput {
  readonly releaseId: ReleaseId
  /** A Channel whose Release the schema must stay compatible with. */
  readonly against: string | null
  readonly requestId: RequestId
}

type App = Pick<
  Product,
  'system' | 'log' | 'root' | 'audit' | 'releases' | 'engine' | 'validations'
>

/**
 * Throws PRODUCT_INCOMPATIBLE with a violation for each failed check, PRODUCT_NOT_FOUND for an
 * unknown Release or an unbound Channel, PRODUCT_RELEASE_RETIRED, PRODUCT_UNAVAILABLE where the
 * engine has no room now, PRODUCT_CORRUPT. Validating a validated Release again changes nothing.
 */
export async function validate(app: App, actor: Actor, input: ValidateInput): Promise<Validated> {
  requireCandidate(app, input.releaseId)
  return app.validations.run(async () => {
    const record = requireCandidate(app, input.releaseId)
    const release = await app.releases.load(input.releaseId)
    if (record.state === 'rejected') throw incompatible(record.checks)
    const own = record.state === 'validated' ? [] : await checkCode(app, release)
    if (own.some(isFailed)) {
      decide(app, actor, { ...input, state: 'rejected', checks: own })
      throw incompatible(own)
    }
    const compatibility = await checkAgainst(app, release, input.against)
    if (compatibility.some(isFailed)) throw incompatible(compatibility)
    if (record.state === 'published') {
      const prepared = await prepare(app, release)
      if (prepared.some(isFailed)) throw incompatible(prepared)
      decide(app, actor, { ...input, state: 'validated', checks: [...own, ...prepared] })
    }
    const { releaseId, state, checks, validatedAtMicros } = requireCandidate(app, input.releaseId)
    return {
      releaseId,
      state,
      checks: [...checks, ...compatibility],
      validatedAtMicros: validatedAtMicros!,
    }
  })
}

function requireCandidate({ root }: Pick<App, 'root'>, releaseId: ReleaseId): ReleaseRecord {
  const record = root.control.read((reader) => findRelease(reader, releaseId))
  if (record === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: releaseId })
  if (record.state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED')
  return record
}

async function checkCode(
  { engine, log }: Pick<App, 'engine' | 'log'>,
  release: LoadedRelease,
): Promise<ReleaseCheck[]> {
  let described: Json
  try {
    described = await engine.describe(release)
  } catch (error) {
    log.warn('product.release_not_loaded', { releaseId: release.releaseId, error })
    if (isFault(error, 'FUNCTION_FAILED', 'LIMIT_EXCEEDED')) return [loadFailure(error)]
    throw engineFailure(error)
  }
  return codeChecks(release.manifest, described)
}

/** As `engine.prepare`; throws PRODUCT_UNAVAILABLE where the engine has no room now. */
export async function prepare(
  { engine }: Pick<App, 'engine'>,
  release: LoadedRelease,
  tables?: ReadonlySet<string>,
): Promise<readonly ReleaseCheck[]> {
  try {
    return await engine.prepare(release, tables)
  } catch (error) {
    throw engineFailure(error)
  }
}

/** A failure that says nothing for good about the Release: it may be validated again. */
function engineFailure(error: unknown): unknown {
  // A slow machine looks the same as an endless loop.
  if (isFault(error, 'FUNCTION_FAILED', 'LIMIT_EXCEEDED', 'DEADLINE_EXCEEDED')) {
    return incompatible([loadFailure(error)])
  }
  if (isFault(error, 'BUSY', 'UNAVAILABLE')) {
    return new Fault('PRODUCT_UNAVAILABLE', { cause: error, detail: error.detail })
  }
  return error
}

async function checkAgainst(
  { root, releases }: Pick<App, 'root' | 'releases'>,
  release: LoadedRelease,
  against: string | null,
): Promise<ReleaseCheck[]> {
  if (against === null) return []
  const channel = root.control.read((reader) => findChannel(reader, against))
  if (channel === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: `channel ${against}` })
  return compatibilityChecks(release, await releases.load(channel.releaseId))
}

function decide(
  { system, root, audit }: Pick<App, 'system' | 'root' | 'audit'>,
  actor: Actor,
  decision: ValidateInput & {
    readonly state: 'validated' | 'rejected'
    readonly checks: readonly ReleaseCheck[]
  },
): void {
  const { releaseId, state, checks, requestId } = decision
  root.control.transaction((tx) => {
    if (!markReleaseDecided(tx, releaseId, { state, checks, atMicros: system.nowMicros() })) return
    advanceRevision(tx)
    audit.append(tx, actor, {
      operation: 'product.release.validate',
      outcome: state === 'validated' ? 'succeeded' : 'failed',
      subject: releaseId,
      requestId,
    })
  })
  audit.deliver()
}
