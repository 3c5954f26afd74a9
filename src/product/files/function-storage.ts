/** Implements the parts of `ctx.storage` that need more than metadata, for the engine. */
import type { FunctionStorage } from '../../engine/files/function-storage.ts'
import { checksumStream } from '../../system/checksums.ts'
import { inSlices } from '../../system/event-loop.ts'
import { sealDownload, sealSignedDownload } from './download-tokens.ts'
import type { FilePorts } from './ports.ts'
import { storeFile } from './store.ts'
import { issueUpload } from './uploads.ts'

export const DOWNLOADS_PATH = '/v1/files/downloads/'
export const SIGNED_DOWNLOADS_PATH = '/v1/files/signed-downloads/'
/** Number of steps in the lifetime of a signed URL. Requests in one step get equal URLs. */
const SIGNED_STEPS = 4

/**
 * Returns the storage for an engine. `ports` is a function, because the ports need the engine and
 * exist only after it.
 */
export function functionStorage(ports: () => FilePorts): FunctionStorage {
  return {
    issueDownload({ fileId, nowMicros, expiresInSeconds, fileName }) {
      const expiresAtMillis = Number(nowMicros / 1000n) + expiresInSeconds * 1000
      const token = sealDownload(ports().keyring, { fileId, expiresAtMillis, fileName })
      const path = `${DOWNLOADS_PATH}${fileId}`
      return { path, token, expiresAtMicros: BigInt(expiresAtMillis) * 1000n }
    },
    signDownload({ fileId, nowMicros, expiresInSeconds, fileName, inline }) {
      // A Query runs again after each change of a document that it read. If its URLs differed each
      // time, a page would load each image again.
      const stepMillis = (expiresInSeconds * 1000) / SIGNED_STEPS
      const steps = Math.floor(Number(nowMicros / 1000n) / stepMillis) + SIGNED_STEPS
      const expiresAtMillis = steps * stepMillis
      const claims = { fileId, expiresAtMillis, fileName, inline }
      const path = SIGNED_DOWNLOADS_PATH + sealSignedDownload(ports().keyring, claims)
      return { path, expiresAtMicros: BigInt(expiresAtMillis) * 1000n }
    },
    issueUpload: (request) => issueUpload(ports(), request),
    async put(object, bytes) {
      const staged = await ports().blobs.stage(bytes.length)
      try {
        await staged.write(bytes)
        const md5 = checksumStream('md5')
        await inSlices(bytes, (slice) => void md5.update(slice))
        const stored = { ...object, uploadId: null, etag: md5.digest().toHex() }
        const { fileId } = await storeFile(ports(), staged, stored)
        return fileId
      } finally {
        await staged.discard()
      }
    },
    read: ({ sha256, size }) => ports().blobs.read({ sha256, size: Number(size) }),
  }
}
