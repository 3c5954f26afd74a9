/** The files of an export, from a ZIP archive or from a directory. */
import { exportInvalid } from './export-fault.ts'

/**
 * Files of an export.
 * @limit Client: files of an export that `svc import` reads
 */
export const EXPORT_FILES_MAX = 1_000_000

export interface ExportFiles {
  /** Paths with slashes, sorted by their UTF-16; none of them leaves the export. */
  readonly names: readonly string[]
  has(name: string): boolean
  /** Bytes of the content. */
  sizeOf(name: string): number
  /** Yields the content. Throws CLIENT_EXPORT_INVALID where it is not as the archive says. */
  read(name: string): AsyncIterable<Uint8Array>
  close(): void
}

/** Reads a whole file of at most `bytesMax` bytes. Throws CLIENT_EXPORT_INVALID. */
export async function readWhole(
  files: ExportFiles,
  name: string,
  bytesMax: number,
): Promise<Uint8Array> {
  const size = files.sizeOf(name)
  if (size > bytesMax) throw exportInvalid(`${name} has more than ${bytesMax} bytes.`)
  const chunks: Uint8Array[] = []
  for await (const chunk of files.read(name)) chunks.push(chunk)
  return Buffer.concat(chunks)
}
