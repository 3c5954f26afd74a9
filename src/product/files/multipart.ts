/**
 * Multipart uploads of S3 clients. The bytes of a part are stored like those of a file; the
 * documents of upload and parts are their references. Completing an upload joins the parts into
 * one file and closes the upload in the same commit.
 */
import { type FileDocument, findObject } from '../../engine/files/file-documents.ts'
import {
  deleteMultipart,
  deletePart,
  findPart,
  insertMultipart,
  insertPart,
  isMultipartId,
  listMultiparts,
  type MultipartDocument,
  type MultipartPage,
  type PartDocument,
  patchMultipart,
  rangeMultiparts,
  rangeParts,
  readMultipart,
} from '../../engine/files/multipart-documents.ts'
import type { Transaction } from '../../engine/transactions/transaction.ts'
import { Fault } from '../../errors/fault.ts'
import type { StagedBlob } from '../../storage/blobs/blobs.ts'
import {
  FILE_BYTES_MAX,
  MULTIPART_SECONDS_MAX,
  MULTIPART_UPLOADS_MAX,
} from '../../value/files/files.ts'
import { requireAdmission } from '../buckets/admission.ts'
import type { Reservation } from './bucket-usage.ts'
import type { FilePorts } from './ports.ts'

export interface NewMultipart {
  readonly bucket: string
  readonly key: string
  readonly contentType: string
  readonly headers: ReadonlyMap<string, string>
  readonly checksum?: string | undefined
  readonly isComposite?: boolean | undefined
}

/** The object that an upload is for. */
export interface MultipartAddress {
  readonly bucket: string
  readonly key: string
  readonly multipartId: string
}

/** A part whose bytes are staged. */
export interface NewPart {
  readonly number: number
  /** The MD5 in hexadecimal. */
  readonly etag: string
  readonly checksums?: ReadonlyMap<string, string> | undefined
  /** The reservation of its transfer, which its owner releases. */
  readonly reservation: Reservation
}

/** Maximum documents that one transaction reads or deletes. */
const BATCH = 1_000

/** Returns the ID. Raises FILE_NOT_FOUND and LIMIT_EXCEEDED as `storeFile`, and UNAVAILABLE. */
export async function beginMultipart(ports: FilePorts, upload: NewMultipart): Promise<string> {
  requireAdmission(ports.buckets, upload.bucket, 0n)
  return ports.documents.change(async (transaction) => {
    const limit = MULTIPART_UPLOADS_MAX
    const known = await rangeMultiparts(transaction, { bucket: upload.bucket, prefix: '', limit })
    if (known.length === limit) {
      throw new Fault('BUSY', { detail: `bucket ${upload.bucket}: too many multipart uploads` })
    }
    return insertMultipart(transaction, { ...upload, bytes: 0n, isOpen: true })
  })
}

/** Returns the open upload; null if this object has none with this ID. */
export async function findMultipart(
  { documents }: Pick<FilePorts, 'documents'>,
  address: MultipartAddress,
): Promise<MultipartDocument | null> {
  return documents.read((transaction) => readOpen(transaction, address))
}

/** Returns the open upload in the transaction; null if this object has none with this ID. */
export async function readOpen(
  transaction: Transaction,
  { bucket, key, multipartId }: MultipartAddress,
): Promise<MultipartDocument | null> {
  if (!isMultipartId(multipartId)) return null
  const found = await readMultipart(transaction, multipartId)
  return found?.isOpen && found.bucket === bucket && found.key === key ? found : null
}

/**
 * Stores a part, which replaces an earlier one with its number. Returns false if the upload is no
 * longer open. Raises LIMIT_EXCEEDED beyond the bounds of the bucket, UNAVAILABLE, and
 * RESULT_UNCERTAIN.
 */
export async function storePart(
  ports: FilePorts,
  staged: StagedBlob,
  address: MultipartAddress,
  { number, etag, checksums, reservation }: NewPart,
): Promise<boolean> {
  const { documents, collection } = ports
  const { sha256, size } = await staged.finish()
  const stored = await collection.hold(sha256, async () => {
    await staged.commit()
    return documents.change(async (transaction) => {
      const upload = await readOpen(transaction, address)
      if (upload === null) return null
      const { multipartId } = upload
      const replaced = await findPart(transaction, multipartId, number)
      if (replaced !== null) await deletePart(transaction, replaced.partId)
      const part = { multipartId, number, size, sha256, etag, checksums }
      const partId = await insertPart(transaction, part)
      const added = BigInt(size) - BigInt(replaced?.size ?? 0)
      const bytes = upload.bytes + added
      const bucket = requireAdmission(ports.buckets, address.bucket, bytes)
      if (bytes > FILE_BYTES_MAX)
        throw new Fault('LIMIT_EXCEEDED', { detail: 'bytes of an upload' })
      if (bucket.quotaBytes !== null) await ports.usage.whenCounted()
      reservation.commit(bucket, added, partId)
      await patchMultipart(transaction, multipartId, { bytes })
      return { replaced }
    })
  })
  // This must follow `hold`, which assumes after a successful task that the bytes are referenced.
  if (stored === null) collection.suspect(sha256)
  else if (stored.replaced !== null) collection.suspect(stored.replaced.sha256)
  return stored !== null
}

/** Returns the bytes of the part that a part with this number replaces. */
export async function replacedPartBytes(
  { documents }: Pick<FilePorts, 'documents'>,
  { multipartId }: MultipartAddress,
  number: number,
): Promise<bigint> {
  const part = await documents.read((transaction) => findPart(transaction, multipartId, number))
  return BigInt(part?.size ?? 0)
}

/** Returns the parts with a number over `after`, at most `limit`, in the order of their numbers. */
export async function listPartsOf(
  { documents }: Pick<FilePorts, 'documents'>,
  multipartId: string,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly PartDocument[]> {
  const parts: PartDocument[] = []
  while (parts.length < limit) {
    const from = parts.at(-1)?.number ?? after
    const page = { multipartId, after: from, limit: Math.min(BATCH, limit - parts.length) }
    const found = await documents.read((transaction) => rangeParts(transaction, page))
    parts.push(...found)
    if (found.length < page.limit) break
  }
  return parts
}

/** Closes the upload and removes its parts. Returns false if it is not open. */
export async function abortMultipart(
  ports: FilePorts,
  address: MultipartAddress,
): Promise<boolean> {
  const closed = await ports.documents.change(async (transaction) => {
    const upload = await readOpen(transaction, address)
    if (upload === null) return false
    await patchMultipart(transaction, address.multipartId, { isOpen: false })
    return true
  })
  if (closed) await removeParts(ports, address.multipartId)
  return closed
}

/** Removes the parts of a closed upload, and then the upload. */
export async function removeParts(ports: FilePorts, multipartId: string): Promise<void> {
  const { documents, collection } = ports
  for (;;) {
    const removed = await documents.change(async (transaction) => {
      const parts = await rangeParts(transaction, { multipartId, after: 0, limit: BATCH })
      for (const { partId } of parts) await deletePart(transaction, partId)
      const isLast = parts.length < BATCH
      const upload = isLast ? await readMultipart(transaction, multipartId) : null
      if (upload !== null) await deleteMultipart(transaction, multipartId)
      return parts
    })
    for (const { sha256 } of removed) collection.suspect(sha256)
    if (removed.length < BATCH) return
  }
}

/**
 * Closes uploads that are too old, and removes the documents that closed ones left. Stops between
 * two uploads once `isStopped` returns true. Raises UNAVAILABLE.
 */
export async function removeAbandoned(ports: FilePorts, isStopped: () => boolean): Promise<void> {
  const { documents, system } = ports
  const bound = system.nowMicros() - BigInt(MULTIPART_SECONDS_MAX) * 1_000_000n
  let afterKey: string | null = null
  do {
    const after: string | null = afterKey
    const page: MultipartPage = await documents.read((transaction) =>
      listMultiparts(transaction, { afterKey: after, limit: BATCH }),
    )
    for (const upload of page.uploads) {
      if (isStopped()) return
      if (!upload.isOpen) await removeParts(ports, upload.multipartId)
      else if (upload.createdAtMicros < bound) await abortMultipart(ports, upload)
    }
    afterKey = page.lastKey
  } while (afterKey !== null && !isStopped())
}

/** Returns the open uploads of a bucket by key and age. */
export async function listOpenMultiparts(
  { documents }: Pick<FilePorts, 'documents'>,
  { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
): Promise<readonly MultipartDocument[]> {
  const limit = MULTIPART_UPLOADS_MAX
  const found = await documents.read((transaction) =>
    rangeMultiparts(transaction, { bucket, prefix, limit }),
  )
  return found.filter(({ isOpen }) => isOpen)
}

/** Returns the object that the upload became; null if its key has no such object. */
export async function readCompleted(
  { documents }: Pick<FilePorts, 'documents'>,
  { bucket, key, multipartId }: MultipartAddress,
): Promise<FileDocument | null> {
  const found = await documents.read((transaction) => findObject(transaction, bucket, key))
  return found?.multipartId === multipartId ? found : null
}
