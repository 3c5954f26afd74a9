/** The Function catalog of one Release, from its verified manifest. */
import type { ReleaseId } from '../../value/ids.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ReleasesPort, RootPort } from '../ports.ts'
import { locateTarget } from '../serving/targets.ts'

export interface FunctionCatalog {
  readonly releaseId: ReleaseId
  /** Sorted by name. */
  readonly functions: readonly FunctionManifest[]
}

/** Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED, PRODUCT_CORRUPT. */
export async function listFunctions(
  ports: RootPort & ReleasesPort,
  target: string,
): Promise<FunctionCatalog> {
  const releaseId = locateTarget(ports, target)
  const { manifest } = await ports.releases.load(releaseId)
  return { releaseId, functions: manifest.functions }
}
