/**
 * Cache of Releases, loaded from their verified artifacts on first use. A Release never changes, so
 * no entry is ever stale; callers decide whether a Release may serve.
 */

import { Fault } from '../../errors/fault.ts'
import type { ArtifactStore } from '../../storage/artifacts.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { findRelease, type ReleaseRecord } from '../../storage/control/releases.ts'
import { sha256 } from '../../system/digests.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { WorkspaceManifest } from '../../value/manifest.ts'
import { decodeArtifact } from '../../value/packages/workspace-package.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseManifest } from '../../wire/files/manifest.ts'
import type { LoadedRelease } from '../ports.ts'
import { releaseNotFound } from '../resource-faults.ts'

interface Entry {
  readonly release: LoadedRelease
  readonly bytes: number
}

interface CacheOptions {
  readonly control: ControlDatabase
  readonly artifacts: ArtifactStore
  readonly entriesMax?: number
  readonly bytesMax?: number
}

/**
 * The least recently used Release is dropped beyond these bounds. One that is served stays in
 * memory, because Serving holds it.
 */
const ENTRIES_MAX = 64
const BYTES_MAX = 256 * 1024 * 1024

export class ReleaseCache {
  readonly #options: CacheOptions
  /** Least recently used first. */
  readonly #entries = new Map<ReleaseId, Entry>()
  readonly #loading = new Map<ReleaseId, Promise<LoadedRelease>>()
  #bytes = 0

  constructor(options: CacheOptions) {
    this.#options = options
  }

  /** Returns the Release if it is in memory, and marks it as used. */
  peek(id: ReleaseId): LoadedRelease | null {
    const entry = this.#entries.get(id)
    if (entry === undefined) return null
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    return entry.release
  }

  /** Adds a Release whose bytes were just stored, so that they are not read again. */
  add(release: LoadedRelease, bytes: number): void {
    this.#insert(release.releaseId, { release, bytes })
  }

  /** Drops all other Releases. They are read again when they are called. */
  retainOnly(releases: { has(id: ReleaseId): boolean }): void {
    for (const id of this.#entries.keys()) if (!releases.has(id)) this.forget(id)
  }

  /** Drops a Release after its retirement. */
  forget(id: ReleaseId): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    this.#entries.delete(id)
    this.#bytes -= entry.bytes
  }

  /**
   * Returns the Release, from memory or from its artifacts. Throws PRODUCT_NOT_FOUND for an unknown
   * Release, PRODUCT_RELEASE_RETIRED for a retired one, whose bytes may be removed, PRODUCT_CORRUPT
   * if the bytes differ from those published, PRODUCT_UNAVAILABLE if they cannot be read now.
   */
  async load(id: ReleaseId): Promise<LoadedRelease> {
    const cached = this.peek(id)
    if (cached !== null) return cached
    const shared = this.#loading.get(id)
    if (shared !== undefined) return shared
    const loading = this.#read(id).finally(() => this.#loading.delete(id))
    this.#loading.set(id, loading)
    return loading
  }

  /** Resolves whether the artifacts of a Release are still stored. Throws PRODUCT_UNAVAILABLE. */
  async isStored(id: ReleaseId): Promise<boolean> {
    const { artifacts } = this.#options
    const { manifest, artifact } = this.#require(id)
    for (const { digest, bytes } of [manifest, artifact]) {
      if (!(await artifacts.has(digest, bytes))) return false
    }
    return true
  }

  async #read(id: ReleaseId): Promise<LoadedRelease> {
    const { artifacts } = this.#options
    const record = this.#require(id)
    try {
      const manifest = await artifacts.get(record.manifest.digest, record.manifest.bytes)
      const artifact = await artifacts.get(record.artifact.digest, record.artifact.bytes)
      const release = assembleRelease(record.releaseId, manifest, artifact)
      this.#insert(id, { release, bytes: manifest.length + artifact.length })
      return release
    } catch (error) {
      // The bytes of a Release that was retired meanwhile may be removed; that is not damage.
      this.#require(id)
      throw error
    }
  }

  #require(id: ReleaseId): ReleaseRecord {
    const record = this.#options.control.read((reader) => findRelease(reader, id))
    if (record === null) throw releaseNotFound(id)
    if (record.state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED', { detail: id })
    return record
  }

  #insert(id: ReleaseId, entry: Entry): void {
    const { entriesMax = ENTRIES_MAX, bytesMax = BYTES_MAX } = this.#options
    this.#entries.set(id, entry)
    this.#bytes += entry.bytes
    for (const [oldest, { bytes }] of this.#entries) {
      if (this.#entries.size <= entriesMax && this.#bytes <= bytesMax) break
      this.#entries.delete(oldest)
      this.#bytes -= bytes
    }
  }
}

/** Assembles a stored Release. Throws PRODUCT_CORRUPT if the bytes are not those of a package. */
export function assembleRelease(
  releaseId: ReleaseId,
  manifestBytes: Uint8Array,
  artifactBytes: Uint8Array,
): LoadedRelease {
  try {
    const manifest = parseManifest(new TextDecoder().decode(manifestBytes))
    return decodeRelease(releaseId, manifest, artifactBytes)
  } catch (error) {
    // The digests match, so another version of this program accepted these bytes.
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('PRODUCT_CORRUPT', { detail: `${releaseId}: ${error.message}` })
  }
}

/** Decodes the artifact of a Release. Throws ValidationError for bytes that are not an artifact. */
export function decodeRelease(
  releaseId: ReleaseId,
  manifest: WorkspaceManifest,
  artifactBytes: Uint8Array,
): LoadedRelease {
  const { source, sourceMap } = decodeArtifact(artifactBytes, sha256)
  return {
    releaseId,
    source,
    sourceMap,
    functions: new Map(manifest.functions.map((item) => [item.name, item])),
    tables: new Map(manifest.tables.map((table) => [table.name, table])),
    migrations: new Map((manifest.migrations ?? []).map((each) => [each.name, each])),
    http: manifest.http ?? [],
    manifest,
  }
}
