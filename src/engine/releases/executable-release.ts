/** A Release as the engine executes it: verified code and the declarations of its manifest. */
import type { IndexDefinition } from '../../documents/store.ts'
import type { HttpRouteManifest } from '../../value/http/routes.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { FunctionManifest, MigrationManifest, TableManifest } from '../../value/manifest.ts'

/** Code for a runner. `source` is one script; runner/host.ts describes its form. */
export interface ReleaseCode {
  readonly releaseId: ReleaseId
  readonly source: string
  /** Source map of `source` (JSON text), for stack traces in logs; null if there is none. */
  readonly sourceMap: string | null
}

export interface Release extends ReleaseCode {
  readonly functions: ReadonlyMap<string, FunctionManifest>
  readonly tables: ReadonlyMap<string, TableManifest>
  /** The migrations by name; absent for none. */
  readonly migrations?: ReadonlyMap<string, MigrationManifest>
  /** The routes of `http.ts`, sorted by name; absent for none. */
  readonly http?: readonly HttpRouteManifest[]
}

/** The Releases that may still be called, with the indexes that they declare. */
export type LiveReleases = ReadonlyMap<ReleaseId, readonly IndexDefinition[]>
