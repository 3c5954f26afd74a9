/** The changes of a Release that is not published yet against the Releases that are served. */
import { listBoundReleases, listReleaseUses } from '../../storage/control/releases.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { LoadedRelease, ReleasesPort, RootPort } from '../ports.ts'
import { SchemaComparison } from './comparison/schema-comparison.ts'
import { type SchemaChange, schemaChanges } from './schema-changes.ts'

export interface ServedChanges {
  readonly releaseId: ReleaseId
  /** The Channels and policies that name it, in words. */
  readonly uses: readonly string[]
  readonly changes: readonly SchemaChange[]
  /** Number of further changes. */
  readonly omitted: number
}

/**
 * Maximum number of served Releases that one check compares.
 * @limit Workspaces and Releases: served Releases that `svc release --dry-run` compares
 */
export const SERVED_MAX = 16
/**
 * Maximum number of changes against one Release.
 * @limit Workspaces and Releases: changes against one Release that `svc release --dry-run` lists
 */
export const CHANGES_MAX = 200
/** Maximum number of uses of one Release. */
const USES_MAX = 5

/** Returns the changes against each served Release whose bytes can be read, the newest first. */
export async function servedChanges(
  { root, releases }: RootPort & ReleasesPort,
  next: LoadedRelease,
): Promise<ServedChanges[]> {
  const served = root.control.read((reader) =>
    listBoundReleases(reader)
      .sort()
      .reverse()
      .slice(0, SERVED_MAX)
      .map((releaseId) => ({ releaseId, uses: listReleaseUses(reader, releaseId, USES_MAX) })),
  )
  const comparison = new SchemaComparison()
  const result: ServedChanges[] = []
  for (const { releaseId, uses } of served) {
    const current = await releases.load(releaseId).catch(() => null)
    if (current === null) continue
    const all = schemaChanges(next.tables, current.tables, comparison)
    const changes = all.slice(0, CHANGES_MAX)
    result.push({ releaseId, uses, changes, omitted: all.length - changes.length })
  }
  return result
}
