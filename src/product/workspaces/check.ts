/**
 * The check of a package before its publication: the same checks as validation, of a Release that
 * is never stored. It changes nothing that an operator or an application can see: the indexes that
 * it builds to read the documents in order are dropped again, as those of a retired Release are.
 */
import type { Engine } from '../../engine/engine.ts'
import type { ReleaseCheck } from '../../storage/control/releases.ts'
import type { ConcurrencyLimit, SerialQueue } from '../../system/concurrency.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Chunks } from '../../value/packages/package-stream.ts'
import { isFailed } from '../compatibility/release-checks.ts'
import { type ServedChanges, servedChanges } from '../compatibility/served-changes.ts'
import { checkStoredDocuments } from '../compatibility/stored-documents.ts'
import type { LoadedRelease, ReleasesPort, RootPort } from '../ports.ts'
import type { EngineCollection } from '../releases/engine-collection.ts'
import { assembleRelease } from '../releases/release-cache.ts'
import { checkAgainst, checkCode } from '../releases/validate.ts'
import { readCandidate } from './candidates.ts'

export interface PackageChecked {
  readonly workspace: string
  readonly packageDigest: string
  /** True if every check passed. The first kind of check that fails is the last that is made. */
  readonly compatible: boolean
  readonly checks: readonly ReleaseCheck[]
  /** Empty if the code does not pass its checks. */
  readonly served: readonly ServedChanges[]
}

export interface CheckPorts extends RootPort, ReleasesPort {
  readonly system: System
  readonly log: Logger
  readonly engine: Pick<Engine, 'describe' | 'prepare'>
  readonly publications: Pick<ConcurrencyLimit, 'run'>
  readonly validations: Pick<SerialQueue, 'run'>
  readonly engineCollection: Pick<EngineCollection, 'collect'>
}

/**
 * Checks a package. Throws PRODUCT_INVALID for a package that breaks a rule or belongs to another
 * Project, PRODUCT_NOT_FOUND for a Channel that is not bound, PRODUCT_UNAVAILABLE if the server has
 * no capacity now, and errors of `frame`.
 */
export async function checkPackage(
  ports: CheckPorts,
  { frame, against }: { readonly frame: Chunks; readonly against: string | null },
): Promise<PackageChecked> {
  const { artifacts, descriptor } = ports.root
  const staged = await artifacts.stage()
  try {
    const { workspace, packageDigest, manifest } = await ports.publications.run(() =>
      readCandidate(frame, staged, descriptor.projectId),
    )
    return await ports.validations.run(async () => {
      const releaseId = ports.system.ids.make('rel')
      // The artifact is read inside the queue, so that waiting packages are on the disk and not in
      // memory.
      const release = assembleRelease(releaseId, manifest.content, await staged.read())
      const { checks, served } = await checkRelease(ports, release, against)
      return { workspace, packageDigest, compatible: !checks.some(isFailed), checks, served }
    })
  } finally {
    await staged.discard()
  }
}

async function checkRelease(
  ports: CheckPorts,
  release: LoadedRelease,
  against: string | null,
): Promise<Pick<PackageChecked, 'checks' | 'served'>> {
  const ofCode = await checkCode(ports, release)
  if (ofCode.some(isFailed)) return { checks: ofCode, served: [] }
  const served = await servedChanges(ports, release)
  const ofChannel = await checkAgainst(ports, release, against)
  if (ofChannel.some(isFailed)) return { checks: [...ofCode, ...ofChannel], served }
  try {
    const ofDocuments = await checkStoredDocuments(ports.engine, release)
    return { checks: [...ofCode, ...ofDocuments, ...ofChannel], served }
  } finally {
    ports.engineCollection.collect()
  }
}
