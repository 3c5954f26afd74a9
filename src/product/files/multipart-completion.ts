/** Joins the parts of a multipart upload into one file. */
import type { FileDocument } from '../../engine/files/file-documents.ts'
import type { MultipartDocument } from '../../engine/files/multipart-documents.ts'
import { type PartDocument, patchMultipart } from '../../engine/files/multipart-documents.ts'
import { Fault } from '../../errors/fault.ts'
import type { BlobBody, StagedBlob } from '../../storage/blobs/blobs.ts'
import { checksumStream } from '../../system/checksums.ts'
import { sha256Stream } from '../../system/digests.ts'
import { inSlices } from '../../system/event-loop.ts'
import { formatPartSizes } from '../../value/files/part-sizes.ts'
import { JoinedChecksum, type JoinedChecksumOptions } from './joined-checksums.ts'
import { readOpen } from './multipart.ts'
import type { FilePorts } from './ports.ts'
import { storeFile } from './store.ts'

export interface Completion {
  readonly upload: MultipartDocument
  /** The parts in the order of their bytes; at least one. */
  readonly parts: readonly PartDocument[]
  readonly requireReplaceable: (replaced: FileDocument | null) => void
  /**
   * The checksum that the object gets, and the check of its value, which throws; null for no
   * checksum.
   */
  readonly checksum: (JoinedChecksumOptions & { check(value: string): void }) | null
  /** Returns the failure for an upload that was closed meanwhile. */
  readonly closed: () => Fault
}

/** Returns the entity tag of an object of parts: the MD5 of their MD5s, and their number. */
export function multipartTag(partTags: readonly string[]): string {
  const md5 = checksumStream('md5')
  for (const tag of partTags) md5.update(Uint8Array.fromHex(tag))
  return `${md5.digest().toHex()}-${partTags.length}`
}

/**
 * Joins the parts and closes the upload in one commit. Raises as `storeFile` does, and
 * PRODUCT_CORRUPT if the bytes of a part are damaged.
 */
export async function completeMultipart(
  ports: FilePorts,
  { upload, parts, requireReplaceable, checksum, closed }: Completion,
): Promise<FileDocument> {
  const { multipartId, bucket, key, contentType, headers } = upload
  const size = parts.reduce((sum, part) => sum + part.size, 0)
  const etag = multipartTag(parts.map((part) => part.etag))
  const partSizes = formatPartSizes(parts.map((part) => part.size))
  const joined = checksum === null ? null : new JoinedChecksum(checksum)
  const staged = await ports.blobs.stage(size)
  try {
    for (const part of parts) await appendPart(ports, staged, part, joined)
    const value = joined?.finish()
    if (value !== undefined) checksum!.check(value)
    const checksums = value === undefined ? undefined : new Map([[checksum!.algorithm, value]])
    return await storeFile(ports, staged, {
      bucket,
      key,
      contentType,
      headers,
      etag,
      partSizes,
      multipartId,
      checksums,
      uploadId: null,
      requireReplaceable,
      inCommit: async (transaction) => {
        const open = await readOpen(transaction, { bucket, key, multipartId })
        if (open === null) throw closed()
        await patchMultipart(transaction, multipartId, { isOpen: false })
        return open.bytes
      },
    })
  } finally {
    await staged.discard()
  }
}

async function appendPart(
  { blobs }: FilePorts,
  staged: StagedBlob,
  { sha256, size }: PartDocument,
  joined: JoinedChecksum | null,
): Promise<void> {
  const digest = sha256Stream()
  for await (const chunk of readContent(
    await blobs.open({ sha256, size }, { start: 0, end: size }),
  )) {
    await inSlices(chunk, (slice) => {
      digest.update(slice)
      joined?.update(slice)
    })
    await staged.write(chunk)
  }
  joined?.endPart()
  if (digest.digest().toString('hex') === sha256) return
  throw new Fault('PRODUCT_CORRUPT', { detail: `the part with the content ${sha256} is damaged` })
}

/** Yields the bytes of opened content. */
export async function* readContent(content: BlobBody): AsyncGenerator<Uint8Array> {
  const reader = new Response(content).body!.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
