/** The interface between the adapter of a format and the conversion. */
import type { ObjectShape } from './documents/shapes.ts'
import type {
  DefectiveDocument,
  SourceDocument,
  SourceFile,
  SourceIndex,
} from './documents/source-values.ts'
import type { Conversion } from './output/reports.ts'

export interface Progress {
  /** Says what is done. */
  step(text: string): void
  /** Called often; throws if the conversion has to end. */
  check(): void
}

export interface SourceCollection {
  /** The name in the export. */
  readonly name: string
  readonly table: string
  readonly indexes: readonly SourceIndex[]
  /** The next step where the documents have too many fields. */
  readonly nextIfTooWide?: string
  /** Declares the fields that the export describes; a field may also occur undeclared. */
  declare(fields: ObjectShape): void
  /**
   * Yields the documents in the order of the export, each time the same. Throws
   * CLIENT_EXPORT_INVALID where the file itself is damaged.
   */
  documents(): AsyncIterable<SourceDocument | DefectiveDocument>
}

export interface Source {
  /** The name of the product, such as Convex. */
  readonly product: string
  readonly collections: readonly SourceCollection[]
  files(): AsyncIterable<SourceFile>
  /** Conversions of values, counted while the documents were read last. */
  conversions(): readonly Conversion[]
  /** Sentences about what the export has and this product has not. */
  noCounterpart(): readonly string[]
  close(): void
}
