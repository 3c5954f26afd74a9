/**
 * Whether a validated Release fits what is stored now: since its validation the Releases that are
 * served have gone on writing.
 */
import { listBoundReleases } from '../../storage/control/releases.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { Product } from '../product.ts'
import type { LoadedRelease } from '../releases/release-cache.ts'
import { prepare } from '../releases/validate.ts'
import { incompatible, isFailed } from './release-checks.ts'
import { SchemaComparison } from './schema-compatibility.ts'

type App = Pick<Product, 'root' | 'releases' | 'engine' | 'validations'>

/**
 * Looks at the documents of those tables alone where code of a served Release may have stored what
 * the Release refuses; what is stored while it looks is not looked at again. Throws
 * PRODUCT_INCOMPATIBLE with a violation for each failed check, PRODUCT_UNAVAILABLE where the engine
 * has no room now, PRODUCT_CORRUPT where the Release cannot be read.
 */
export async function requireFitting(app: App, releaseId: ReleaseId): Promise<void> {
  const served = app.root.control.read(listBoundReleases).filter((id) => id !== releaseId)
  if (served.length === 0) return
  const release = await app.releases.load(releaseId)
  const tables = await doubtfulTables(app, release, served)
  if (tables.size === 0) return
  const checks = await app.validations.run(() => prepare(app, release, tables))
  const failed = checks.filter(isFailed)
  if (failed.length > 0) throw incompatible(failed)
}

async function doubtfulTables(
  { releases }: App,
  release: LoadedRelease,
  served: readonly ReleaseId[],
): Promise<ReadonlySet<string>> {
  const comparison = new SchemaComparison()
  const doubtful = new Set<string>()
  for (const id of served) {
    // One that is damaged must not keep another from taking its place.
    const other = await releases.load(id).catch(() => null)
    const found =
      other === null
        ? release.tables.keys()
        : comparison.doubtfulTables(release.tables, other.tables)
    for (const name of found) doubtful.add(name)
  }
  return doubtful
}
