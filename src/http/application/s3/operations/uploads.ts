/** PutObject, and the receipt of bytes that it shares with UploadPart. */
import { requireAdmission } from '../../../../product/files/buckets.ts'
import { storeFile } from '../../../../product/files/store.ts'
import { inSlices } from '../../../../system/event-loop.ts'
import { FILE_BYTES_MAX } from '../../../../value/files/files.ts'
import { peerOf } from '../../../rate-limits.ts'
import { streamS3Body } from '../bodies/bodies.ts'
import { S3Fault } from '../errors.ts'
import { writeCondition } from './conditions.ts'
import { objectHeadersOf } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'

export async function putObject(call: ObjectCall): Promise<Response> {
  const { gateway, request, bucket, key } = call
  const stored = objectHeadersOf(request.headers)
  const requireReplaceable = writeCondition(request.headers)
  return receive(call, async (staged, { md5, checksums }) => {
    const object = { bucket, key, ...stored, etag: md5, uploadId: null, requireReplaceable }
    await storeFile(gateway.files, staged, object)
    return new Response(null, { headers: { etag: `"${md5}"`, ...checksums } })
  })
}

type StagedBytes = Parameters<typeof storeFile>[1]

export interface Received {
  /** In hexadecimal. */
  readonly md5: string
  /** Verified checksums as headers. */
  readonly checksums: Readonly<Record<string, string>>
}

/** Stages the body, verifies it and passes it to `store`. Leaves nothing of a body that fails. */
export async function receive(
  call: ObjectCall,
  store: (staged: StagedBytes, received: Received) => Promise<Response>,
): Promise<Response> {
  const { gateway, incoming, caller, bucket } = call
  const { files, log } = gateway
  const { checks, chunks } = streamS3Body(gateway, incoming, caller)
  const { maximumObjectBytes } = requireAdmission(files.buckets, bucket, BigInt(checks.length ?? 0))
  const bytesMax = Math.min(FILE_BYTES_MAX, Number(maximumObjectBytes ?? FILE_BYTES_MAX))
  if ((checks.length ?? 0) > bytesMax) throw new S3Fault('EntityTooLarge')
  return transferring(call, async () => {
    const staged = await files.blobs.stage(checks.length ?? 0)
    let received = 0
    try {
      for await (const chunk of chunks) {
        received += chunk.length
        if (received > bytesMax) throw new S3Fault('EntityTooLarge')
        await inSlices(chunk, (slice) => checks.update(slice))
        await staged.write(chunk)
      }
      const response = await store(staged, checks.finish())
      gateway.counts.transferred('uploaded', received)
      return response
    } catch (error) {
      const { requestId } = incoming
      const { storageKeyId } = caller
      // A rejected body is in the log of rejections; one that broke off is only here.
      log[error instanceof S3Fault ? 'debug' : 'warn']('files.upload_failed', {
        requestId,
        storageKeyId,
        received,
        error,
      })
      throw error
    } finally {
      await staged.discard()
    }
  })
}

/** Runs a transfer with a permit and without the idle timeout of the connection. */
export async function transferring<T>(
  { gateway, incoming: { binding } }: Pick<ObjectCall, 'gateway' | 'incoming'>,
  transfer: () => Promise<T>,
): Promise<T> {
  const release = await gateway.transfers.uploads.acquire(peerOf(binding))
  binding.takeTime?.()
  try {
    return await transfer()
  } finally {
    binding.returnTime?.()
    release()
  }
}
