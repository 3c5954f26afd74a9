/**
 * Validation makes a published Release servable: its code is loaded inside the sandbox and compared
 * with its manifest, its schema with a Channel's Release, then its indexes are built and the stored
 * documents checked. Only a defect of the code itself rejects the Release permanently.
 */

import type { Engine } from '../../engine/engine.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { RecordedAuthor } from '../../identity/actor.ts'
import { findChannel } from '../../storage/control/channels.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import {
  findRelease,
  markReleaseDecided,
  type ReleaseCheck,
  type ReleaseRecord,
  type ReleaseState,
} from '../../storage/control/releases.ts'
import type { SerialQueue } from '../../system/concurrency.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import {
  codeChecks,
  compatibilityChecks,
  engineFailure,
  incompatible,
  isFailed,
  loadFailure,
} from '../compatibility/release-checks.ts'
import {
  migrationChecks,
  type RequiredMigrationsPorts,
} from '../compatibility/required-migrations.ts'
import { prepareRelease } from '../compatibility/stored-documents.ts'
import type { ChangePorts, LoadedRelease, ReleasesPort, RootPort } from '../ports.ts'
import { channelNotFound, releaseNotFound } from '../resource-faults.ts'

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
  /** Runs in the transaction of the decision. Throws if the decision is no longer permitted. */
  readonly confirm?: (reader: ControlReader) => void
}

export interface ValidationPorts extends ChangePorts, ReleasesPort {
  readonly log: Logger
  readonly engine: Pick<Engine, 'describe' | 'prepare' | 'warm'> & RequiredMigrationsPorts['engine']
  readonly validations: Pick<SerialQueue, 'run'>
}

/**
 * Validates a Release. Throws PRODUCT_INCOMPATIBLE with a violation for each failed check,
 * PRODUCT_NOT_FOUND for an unknown Release or an unbound Channel, PRODUCT_RELEASE_RETIRED,
 * PRODUCT_UNAVAILABLE if the engine has no capacity now, PRODUCT_CORRUPT. Validating a validated
 * Release again changes nothing. Throws what `confirm` throws.
 */
export async function validate(
  ports: ValidationPorts,
  actor: RecordedAuthor,
  input: ValidateInput,
): Promise<Validated> {
  requireCandidate(ports, input.releaseId)
  return ports.validations.run(async () => {
    const record = requireCandidate(ports, input.releaseId)
    const release = await ports.releases.load(input.releaseId)
    if (record.state === 'rejected') throw incompatible(record.checks)
    const ofCode = record.state === 'validated' ? [] : await checkCode(ports, release)
    if (ofCode.some(isFailed)) {
      decide(ports, actor, { ...input, state: 'rejected', checks: ofCode })
      throw incompatible(ofCode)
    }
    const ofChannel = await checkAgainst(ports, release, input.against)
    if (ofChannel.some(isFailed)) throw incompatible(ofChannel)
    if (record.state === 'published') {
      const ofDocuments = await prepareRelease(ports.engine, release)
      if (ofDocuments.some(isFailed)) {
        throw incompatible([...ofDocuments, ...(await migrationChecks(ports, release))])
      }
      decide(ports, actor, { ...input, state: 'validated', checks: [...ofCode, ...ofDocuments] })
    }
    const { releaseId, state, checks, validatedAtMicros } = requireCandidate(ports, input.releaseId)
    return {
      releaseId,
      state,
      checks: [...checks, ...ofChannel],
      validatedAtMicros: validatedAtMicros!,
    }
  })
}

function requireCandidate({ root }: RootPort, releaseId: ReleaseId): ReleaseRecord {
  const record = root.control.read((reader) => findRelease(reader, releaseId))
  if (record === null) throw releaseNotFound(releaseId)
  if (record.state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED')
  return record
}

/**
 * Checks the code against the manifest. A FUNCTION_FAILED or LIMIT_EXCEEDED of the engine is a
 * failed check; its other failures are thrown, so that the Release stays undecided.
 */
export async function checkCode(
  { engine, log }: { readonly engine: Pick<Engine, 'describe'>; readonly log: Logger },
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

/**
 * Checks the schema against that of a Channel's Release; makes no check for null. Throws
 * PRODUCT_NOT_FOUND for a Channel that is not bound.
 */
export async function checkAgainst(
  { root, releases }: RootPort & ReleasesPort,
  release: LoadedRelease,
  against: string | null,
): Promise<ReleaseCheck[]> {
  if (against === null) return []
  const channel = root.control.read((reader) => findChannel(reader, against))
  if (channel === null) throw channelNotFound(against, 'against')
  return compatibilityChecks(release, await releases.load(channel.releaseId))
}

function decide(
  { system, root, audit }: ChangePorts,
  actor: RecordedAuthor,
  decision: ValidateInput & {
    readonly state: 'validated' | 'rejected'
    readonly checks: readonly ReleaseCheck[]
  },
): void {
  const { releaseId, state, checks, requestId, confirm } = decision
  root.control.transaction((tx) => {
    confirm?.(tx)
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
