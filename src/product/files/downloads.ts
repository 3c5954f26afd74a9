/** Downloads: the file of a grant, and its bytes. */
import { type FileDocument, readFile } from '../../engine/files/file-documents.ts'
import { Fault } from '../../errors/fault.ts'
import type { BlobBody } from '../../storage/blobs/blobs.ts'
import { openDownload, openSignedDownload } from './download-tokens.ts'
import type { FilePorts } from './ports.ts'

export interface GrantedFile extends FileDocument {
  /** The name that a browser saves the file under; null for none. */
  readonly fileName: string | null
}

/**
 * Returns the file of a grant; `fileId` is canonical. Raises GRANT_INVALID, FILE_NOT_FOUND and
 * UNAVAILABLE.
 */
export async function findGranted(
  { keyring, documents, system }: FilePorts,
  fileId: string,
  token: string,
): Promise<GrantedFile> {
  const { fileName } = openDownload(keyring, token, { fileId, nowMillis: system.nowMillis() })
  const found = await documents.read((transaction) => readFile(transaction, fileId))
  if (found === null) throw new Fault('FILE_NOT_FOUND')
  return { ...found, fileName }
}

export interface SignedFile extends GrantedFile {
  /** True if a browser may show the file in place, if it has a type for that. */
  readonly inline: boolean
}

/** Returns the file of a signed URL. Raises GRANT_INVALID, FILE_NOT_FOUND and UNAVAILABLE. */
export async function findSigned(
  { keyring, documents, system }: FilePorts,
  token: string,
): Promise<SignedFile> {
  const claims = openSignedDownload(keyring, token, system.nowMillis())
  const { fileId, fileName, inline } = claims
  const found = await documents.read((transaction) => readFile(transaction, fileId))
  if (found === null) throw new Fault('FILE_NOT_FOUND')
  return { ...found, fileName, inline }
}

/**
 * Returns the bytes from `start` to `end` (exclusive) as a body, which opens them when it is sent.
 * Raises PRODUCT_CORRUPT if they are missing or have another length, and UNAVAILABLE.
 */
export function openBytes(
  { blobs }: FilePorts,
  { sha256, size }: FileDocument,
  slice: { readonly start: number; readonly end: number },
): Promise<BlobBody> {
  return blobs.open({ sha256, size: Number(size) }, slice)
}
