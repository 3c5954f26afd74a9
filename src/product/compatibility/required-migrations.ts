/** Requires that the migrations which a Release names are complete before it is bound. */
import type { Engine } from '../../engine/engine.ts'
import { Fault } from '../../errors/fault.ts'
import type { ReleaseCheck } from '../../storage/control/releases.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { LoadedRelease, ReleasesPort } from '../ports.ts'
import { failingAsProduct } from '../schedules/scheduled-work.ts'
import { failedCheck } from './release-checks.ts'

export interface RequiredMigrationsPorts extends ReleasesPort {
  readonly engine: { readonly migrations: Pick<Engine['migrations'], 'isComplete'> }
}

/**
 * Throws PRODUCT_INCOMPATIBLE with the command to run for each migration that the Release requires
 * and that is not complete, PRODUCT_UNAVAILABLE, and what ReleaseCache.load throws. A migration of
 * the Release itself is complete if that of an earlier Release with its digest is; any other one is
 * complete if a migration of that name is.
 */
export async function requireMigrated(
  ports: RequiredMigrationsPorts,
  releaseId: ReleaseId,
): Promise<void> {
  const release = await ports.releases.load(releaseId)
  const rules = await pendingCommands(ports, release)
  if (rules.length === 0) return
  const violations = rules.map((rule) => ({ path: 'releaseId', rule }))
  throw new Fault('PRODUCT_INCOMPATIBLE', { violations })
}

/**
 * Returns a failed check for each migration that the Release requires and that is not complete, for
 * a validation whose stored documents do not fit.
 */
export async function migrationChecks(
  ports: Pick<RequiredMigrationsPorts, 'engine'>,
  release: LoadedRelease,
): Promise<ReleaseCheck[]> {
  const rules = await pendingCommands(ports, release)
  return rules.map((rule) => failedCheck('migrations', rule))
}

async function pendingCommands(
  ports: Pick<RequiredMigrationsPorts, 'engine'>,
  release: LoadedRelease,
): Promise<string[]> {
  const pending = await pendingMigrations(ports, release)
  return pending.map(
    (name) => `after the migration ${name} is complete: ${commandOf(release, name)}`,
  )
}

/** Returns the names that the Release requires and that are not complete, in their order. */
export async function pendingMigrations(
  { engine }: Pick<RequiredMigrationsPorts, 'engine'>,
  { manifest: { requires = [], migrations = [] } }: Pick<LoadedRelease, 'manifest'>,
): Promise<string[]> {
  const pending: string[] = []
  for (const name of requires) {
    const own = migrations.find((migration) => migration.name === name)
    const complete = () => engine.migrations.isComplete(name, own?.digest ?? null)
    if (!(await failingAsProduct(complete))) pending.push(name)
  }
  return pending
}

function commandOf({ releaseId, manifest }: LoadedRelease, name: string): string {
  const isOwn = manifest.migrations?.some((migration) => migration.name === name) === true
  return isOwn
    ? `svc migrations run ${name} --release ${releaseId}`
    : `svc migrations run ${name} --release REL, with the Release that has it`
}
