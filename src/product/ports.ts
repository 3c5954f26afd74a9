/**
 * Ports of the Product's rules: the parts that several of them use. A rule extends one of these by
 * what it uses alone, so that only product.ts knows all parts.
 */
import type { ProductRoot } from '../storage/root.ts'
import type { System } from '../system/system.ts'
import type { ReleaseId } from '../value/ids.ts'
import type { AuditOutbox } from './audit/audit-outbox.ts'
import type { LoadedRelease } from './releases/release-cache.ts'

export interface RootPort {
  readonly root: ProductRoot
}

/** The parts that every audited change of the control database uses. */
export interface ChangePorts extends RootPort {
  readonly system: System
  readonly audit: Pick<AuditOutbox, 'append' | 'deliver'>
}

/** Loads a Release from its verified artifacts, as ReleaseCache.load does. */
export interface ReleasesPort {
  readonly releases: { load(releaseId: ReleaseId): Promise<LoadedRelease> }
}
