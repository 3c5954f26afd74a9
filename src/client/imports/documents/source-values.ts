/** Values of an export before the schema is known: what decides a type may come later. */
import type { Timestamp, Value } from '../../../value/values.ts'

/** An ID of another document, or of a file. It stays a text where other texts stand too. */
export class Reference {
  /** The table, or `files`. */
  readonly table: string
  /** The ID that the document gets. */
  readonly id: string
  /** The ID that the export has. */
  readonly text: string

  constructor(table: string, id: string, text: string) {
    this.table = table
    this.id = id
    this.text = text
  }
}

export type SourceObject = ReadonlyMap<string, SourceValue>
export type SourceValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Timestamp
  | Reference
  | readonly SourceValue[]
  | SourceObject

/** The index of a collection, by the names of its fields in the export. */
export interface SourceIndex {
  readonly name: string
  readonly fields: readonly string[]
  readonly unique: boolean
}

export interface SourceDocument {
  readonly id: string
  /** The fields by their names in the export, without the ID. */
  readonly fields: SourceObject
  /** The document as the export has it, for the digest of the source. */
  readonly raw: Uint8Array
}

/** A document that cannot be converted. */
export interface DefectiveDocument {
  /** The rule that it breaks, without a value of the document. */
  readonly defect: string
  readonly raw: Uint8Array
}

export interface SourceFile {
  /** The ID that references have until the file is stored: `fil_` and a ULID. */
  readonly fileId: string
  /** The key that the object gets. */
  readonly key: string
  readonly contentType: string
  readonly bytes: number
  /** Lowercase hex, where the export says it. */
  readonly sha256: string | null
  read(): AsyncIterable<Uint8Array>
}

/** Type of a value, as a type guard that `Value` shares. */
export function isList(value: SourceValue): value is readonly SourceValue[] {
  return Array.isArray(value)
}

export type Plain = Exclude<Value, readonly Value[] | ReadonlyMap<string, Value>>
