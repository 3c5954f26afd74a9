/** The catalogs of one Release, its Functions and its tables, from its verified manifest. */
import type { HttpRouteManifest } from '../../value/http/routes.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { FunctionManifest, TableManifest } from '../../value/manifest.ts'
import type { ReleasesPort, RootPort } from '../ports.ts'
import { locateTarget } from '../targets.ts'

export interface FunctionCatalog {
  readonly releaseId: ReleaseId
  /** Sorted by name. */
  readonly functions: readonly FunctionManifest[]
  /** The routes of `http.ts`, sorted by name. */
  readonly http: readonly HttpRouteManifest[]
}

export interface TableCatalog {
  readonly releaseId: ReleaseId
  /** Sorted by name. */
  readonly tables: readonly TableManifest[]
}

/** Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED, PRODUCT_CORRUPT. */
export async function listFunctions(
  ports: RootPort & ReleasesPort,
  target: string,
): Promise<FunctionCatalog> {
  const releaseId = locateTarget(ports, target)
  const { manifest } = await ports.releases.load(releaseId)
  return { releaseId, functions: manifest.functions, http: manifest.http ?? [] }
}

/** Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED, PRODUCT_CORRUPT. */
export async function listTables(
  ports: RootPort & ReleasesPort,
  target: string,
): Promise<TableCatalog> {
  const releaseId = locateTarget(ports, target)
  const { manifest } = await ports.releases.load(releaseId)
  return { releaseId, tables: manifest.tables }
}
