/**
 * Ports of the Product's rules: the parts that several of them use. A rule extends one of these by
 * what it uses alone, so that only product.ts knows all parts.
 */
import type { Release } from '../engine/releases/executable-release.ts'
import type { ProductRoot } from '../storage/root.ts'
import type { System } from '../system/system.ts'
import type { ReleaseId } from '../value/ids.ts'
import type { WorkspaceManifest } from '../value/manifest.ts'
import type { AuditOutbox } from './audit/audit-outbox.ts'

export interface RootPort {
  readonly root: ProductRoot
}

/** The parts that every audited change of the control database uses. */
export interface ChangePorts extends RootPort {
  readonly system: System
  readonly audit: Pick<AuditOutbox, 'append' | 'deliver'>
}

/** A Release in memory. It never changes. */
export interface LoadedRelease extends Release {
  readonly manifest: WorkspaceManifest
}

/** Loads a Release from its verified artifacts, as ReleaseCache.load does. */
export interface ReleasesPort {
  readonly releases: { load(releaseId: ReleaseId): Promise<LoadedRelease> }
}

/**
 * Runs `commit` once while the caller is locked as authorized, because a body may take hours to
 * arrive. Throws before `commit` if the caller is no longer authorized.
 */
export type Authorized = <T>(commit: () => T) => Promise<T>
