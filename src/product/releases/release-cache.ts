/**
 * Releases in memory, loaded from their verified artifacts when first asked for. A Release never
 * changes, so what is here is never stale; whether it may serve is decided elsewhere.
 */
import type { Release } from '../../engine/releases/executable-release.ts'
import { Fault } from '../../errors/fault.ts'
import type { ArtifactStore } from '../../storage/artifacts.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import { findRelease, type ReleaseRecord } from '../../storage/control/releases.ts'
import { sha256 } from '../../system/digests.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { parseManifest, type WorkspaceManifest } from '../../value/manifest.ts'
import { decodeArtifact } from '../../value/packages/workspace-package.ts'
import { ValidationError } from '../../value/validation-error.ts'

export interface LoadedRelease extends Release {
  readonly manifest: WorkspaceManifest
}

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

  /** The Release if it is in memory. */
  peek(id: ReleaseId): LoadedRelease | null {
    const entry = this.#entries.get(id)
    if (entry === undefined) return null
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    return entry.release
  }

  /** After its retirement. */
  forget(id: ReleaseId): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    this.#entries.delete(id)
    this.#bytes -= entry.bytes
  }

  /**
   * Throws PRODUCT_NOT_FOUND for an unknown Release, PRODUCT_RELEASE_RETIRED for one whose bytes
   * may be gone, PRODUCT_CORRUPT where they are not those that were published, PRODUCT_UNAVAILABLE
   * where they cannot be read now.
   */
  async load(id: ReleaseId): Promise<LoadedRelease> {
    const known = this.peek(id)
    if (known !== null) return known
    const running = this.#loading.get(id)
    if (running !== undefined) return running
    const loading = this.#read(id).finally(() => this.#loading.delete(id))
    this.#loading.set(id, loading)
    return loading
  }

  async #read(id: ReleaseId): Promise<LoadedRelease> {
    const { artifacts } = this.#options
    const record = this.#require(id)
    try {
      const manifest = await artifacts.get(record.manifest.digest, record.manifest.bytes)
      const artifact = await artifacts.get(record.artifact.digest, record.artifact.bytes)
      const release = assemble(record, manifest, artifact)
      this.#keep(id, { release, bytes: manifest.length + artifact.length })
      return release
    } catch (error) {
      // What was retired meanwhile may have lost its bytes, which is no damage.
      this.#require(id)
      throw error
    }
  }

  #require(id: ReleaseId): ReleaseRecord {
    const record = this.#options.control.read((reader) => findRelease(reader, id))
    if (record === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: id })
    if (record.state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED', { detail: id })
    return record
  }

  #keep(id: ReleaseId, entry: Entry): void {
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

function assemble(
  record: ReleaseRecord,
  manifestBytes: Uint8Array,
  artifactBytes: Uint8Array,
): LoadedRelease {
  try {
    const manifest = parseManifest(new TextDecoder().decode(manifestBytes))
    const { source, sourceMap } = decodeArtifact(artifactBytes, sha256)
    return {
      releaseId: record.releaseId,
      source,
      sourceMap,
      functions: new Map(manifest.functions.map((item) => [item.name, item])),
      tables: new Map(manifest.tables.map((table) => [table.name, table])),
      manifest,
    }
  } catch (error) {
    // The digests fit, so this is what another version of this program accepted once.
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('PRODUCT_CORRUPT', { detail: `${record.releaseId}: ${error.message}` })
  }
}
