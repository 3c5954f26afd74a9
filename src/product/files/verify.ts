/** Compares all metadata of files with all stored bytes, once and completely. */
import { type FilePage, listFiles } from '../../engine/files/file-documents.ts'
import { listParts, type PartPage } from '../../engine/files/multipart-documents.ts'
import type { FilePorts } from './ports.ts'

export type VerifyPorts = Pick<FilePorts, 'documents' | 'blobs'>

/** A content that files refer to and that is missing or damaged. */
export interface LostContent {
  readonly sha256: string
  readonly condition: 'missing' | 'damaged'
  /** The files and the parts of unfinished uploads with this content. */
  readonly fileIds: readonly string[]
}

export interface StorageReport {
  readonly files: number
  readonly contents: number
  readonly bytes: bigint
  readonly lost: readonly LostContent[]
  /** SHA-256 of stored bytes that no file refers to. */
  readonly orphaned: readonly string[]
}

const PAGE_FILES = 500

interface Referenced {
  readonly size: bigint
  readonly fileIds: string[]
}

/**
 * Compares metadata with bytes. `repair` removes orphaned bytes and moves damaged ones to
 * quarantine; metadata stays, so that a backup of the bytes can be restored. No other part of the
 * process may store files meanwhile. Raises UNAVAILABLE and PRODUCT_CORRUPT.
 */
export async function verifyStorage(
  ports: VerifyPorts,
  { repair }: { readonly repair: boolean },
): Promise<StorageReport> {
  const { blobs } = ports
  const referenced = await readReferenced(ports)
  const lost: LostContent[] = []
  let bytes = 0n
  let files = 0
  for (const [sha256, { size, fileIds }] of referenced) {
    bytes += size
    files += fileIds.length
    const condition = await blobs.check({ sha256, size: Number(size) }, { quick: false })
    if (condition === 'whole') continue
    lost.push({ sha256, condition, fileIds })
    if (repair && condition === 'damaged') await blobs.quarantine(sha256)
  }
  const orphaned: string[] = []
  for await (const { sha256 } of blobs.list()) {
    if (!referenced.has(sha256)) orphaned.push(sha256)
  }
  if (repair) for (const sha256 of orphaned) await blobs.remove(sha256)
  return { files, contents: referenced.size, bytes, lost, orphaned }
}

async function readReferenced({ documents }: VerifyPorts): Promise<Map<string, Referenced>> {
  const referenced = new Map<string, Referenced>()
  const add = (id: string, { sha256, size }: { sha256: string; size: bigint }): void => {
    const known = referenced.get(sha256)
    if (known === undefined) referenced.set(sha256, { size, fileIds: [id] })
    else known.fileIds.push(id)
  }
  let afterKey: string | null = null
  do {
    const after: string | null = afterKey
    const page: FilePage = await documents.read((transaction) =>
      listFiles(transaction, { afterKey: after, limit: PAGE_FILES }),
    )
    for (const file of page.files) add(file.fileId, file)
    afterKey = page.lastKey
  } while (afterKey !== null)
  do {
    const after: string | null = afterKey
    const page: PartPage = await documents.read((transaction) =>
      listParts(transaction, { afterKey: after, limit: PAGE_FILES }),
    )
    for (const { partId, sha256, size } of page.parts) add(partId, { sha256, size: BigInt(size) })
    afterKey = page.lastKey
  } while (afterKey !== null)
  return referenced
}
