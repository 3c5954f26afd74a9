/** `ctx.storage` beyond metadata, as the engine calls it. */
import type { FunctionStorage } from '../../engine/files/function-storage.ts'
import { checksumStream } from '../../system/checksums.ts'
import { inSlices } from '../../system/event-loop.ts'
import { sealDownload } from './download-tokens.ts'
import type { FilePorts } from './ports.ts'
import { storeFile } from './store.ts'
import { issueUpload } from './uploads.ts'

export const DOWNLOADS_PATH = '/v1/files/downloads/'

/** `ports` returns the ports of files, which need the engine and so exist after it. */
export function functionStorage(ports: () => FilePorts): FunctionStorage {
  return {
    issueDownload({ fileId, nowMicros, expiresInSeconds, fileName }) {
      const expiresAtMillis = Number(nowMicros / 1000n) + expiresInSeconds * 1000
      const token = sealDownload(ports().keyring, { fileId, expiresAtMillis, fileName })
      const path = `${DOWNLOADS_PATH}${fileId}`
      return { path, token, expiresAtMicros: BigInt(expiresAtMillis) * 1000n }
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
