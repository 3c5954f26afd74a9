/** The fields that Releases in use declare: those of all Releases that are not retired. */
import { listLiveReleases, type ReleaseRecord } from '../../storage/control/releases.ts'
import type { ProductRoot } from '../../storage/root.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { EMPTY_SHAPE, type FieldShape, mergeShapes } from '../../value/schema/field-shapes.ts'
import { declaredShape } from '../../value/schema/undeclared-fields.ts'
import { parseManifest } from '../../wire/files/manifest.ts'

type Tables = ReadonlyMap<string, FieldShape>

export class DeclaredFields {
  readonly #root: Pick<ProductRoot, 'control' | 'artifacts'>
  /** The tables of the Releases that the last call read; a Release never changes. */
  #known: ReadonlyMap<ReleaseId, Tables> = new Map()

  constructor(root: Pick<ProductRoot, 'control' | 'artifacts'>) {
    this.#root = root
  }

  /** Throws PRODUCT_CORRUPT and PRODUCT_UNAVAILABLE if the manifest of a Release cannot be read. */
  async of(table: string): Promise<FieldShape> {
    const known = new Map<ReleaseId, Tables>()
    for (const record of this.#root.control.read(listLiveReleases)) {
      const { releaseId } = record
      known.set(releaseId, this.#known.get(releaseId) ?? (await this.#tablesOf(record)))
    }
    this.#known = known
    let shape: FieldShape = EMPTY_SHAPE
    for (const tables of known.values())
      shape = mergeShapes(shape, tables.get(table) ?? EMPTY_SHAPE)
    return shape
  }

  async #tablesOf({ manifest: { digest, bytes } }: ReleaseRecord): Promise<Tables> {
    const manifest = await this.#root.artifacts.get(digest, bytes)
    const { tables } = parseManifest(new TextDecoder().decode(manifest))
    return new Map(tables.map(({ name, fields }) => [name, declaredShape(fields)]))
  }
}
