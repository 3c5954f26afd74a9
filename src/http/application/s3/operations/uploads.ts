/** PutObject, and the reception of bytes that PutObject and UploadPart share. */

import { requireAdmission } from '../../../../product/buckets/admission.ts'
import type { Reservation } from '../../../../product/files/bucket-usage.ts'
import { readObject } from '../../../../product/files/objects.ts'
import { reserveIn, storeFile } from '../../../../product/files/store.ts'
import { inSlices } from '../../../../system/event-loop.ts'
import { FILE_BYTES_MAX } from '../../../../value/files/files.ts'
import { peerOf } from '../../../rate-limits.ts'
import { type S3Body, streamS3Body } from '../bodies/bodies.ts'
import { type Checksums, checksumHeaders } from '../checksums.ts'
import { S3Fault } from '../errors.ts'
import { writeCondition } from './conditions.ts'
import { parseObjectHeaders } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'

export async function putObject(call: ObjectCall): Promise<Response> {
  const { gateway, request, bucket, key } = call
  const stored = parseObjectHeaders(request.headers)
  const requireReplaceable = writeCondition(request.headers)
  return receive(call, {
    replacedBytes: async () => (await readObject(gateway.files, bucket, key))?.size ?? 0n,
    async store(staged, { md5, checksums, reservation }) {
      const object = { bucket, key, ...stored, etag: md5, checksums, uploadId: null }
      const conditional = { ...object, requireReplaceable }
      await storeFile(gateway.files, staged, conditional, { reservation })
      return new Response(null, { headers: { etag: `"${md5}"`, ...checksumHeaders(checksums) } })
    },
  })
}

type StagedBytes = Parameters<typeof storeFile>[1]

export interface Received {
  /** The MD5 in hexadecimal. */
  readonly md5: string
  /** Verified checksums. */
  readonly checksums: Checksums
  readonly reservation: Reservation
}

export interface Receipt {
  /** Returns the bytes of the bucket that the received bytes replace. */
  replacedBytes(): Promise<bigint>
  store(staged: StagedBytes, received: Received): Promise<Response>
}

/** Stages the body, verifies it and passes it to `store`. Removes the bytes of a failed body. */
export async function receive(call: ObjectCall, receipt: Receipt): Promise<Response> {
  const { gateway, incoming, caller, bucket } = call
  const body = streamS3Body(gateway, incoming, caller)
  const { files } = gateway
  const length = body.checks.length ?? 0
  const admitting = requireAdmission(files.buckets, bucket, BigInt(length))
  const { maximumObjectBytes } = admitting
  const bytesMax = Math.min(FILE_BYTES_MAX, Number(maximumObjectBytes ?? FILE_BYTES_MAX))
  const reservation = await reserveIn(files, admitting, receipt.replacedBytes)
  const requireFit = (bytes: number): void => {
    if (bytes > bytesMax) throw new S3Fault('EntityTooLarge')
    reservation.extendTo(admitting, BigInt(bytes))
  }
  try {
    requireFit(length)
    return await transferring(call, () =>
      stage(call, { ...receipt, body, reservation, requireFit }),
    )
  } finally {
    reservation.release()
  }
}

interface Staging extends Receipt {
  readonly body: S3Body
  readonly reservation: Reservation
  /** Throws if the number of bytes exceeds a bound. */
  readonly requireFit: (bytes: number) => void
}

async function stage(
  { gateway, incoming, caller }: ObjectCall,
  { store, body, reservation, requireFit }: Staging,
): Promise<Response> {
  const { files, log, counts } = gateway
  const { checks, chunks } = body
  const staged = await files.blobs.stage(checks.length ?? 0)
  let received = 0
  try {
    for await (const chunk of chunks) {
      received += chunk.length
      requireFit(received)
      await inSlices(chunk, (slice) => checks.update(slice))
      await staged.write(chunk)
    }
    const response = await store(staged, { ...checks.finish(), reservation })
    counts.transferred('uploaded', received)
    return response
  } catch (error) {
    const { requestId } = incoming
    const { storageKeyId } = caller
    // The rejection log has rejected bodies; only this record has interrupted ones.
    const level = error instanceof S3Fault ? 'debug' : 'warn'
    log[level]('files.upload_failed', { requestId, storageKeyId, received, error })
    throw error
  } finally {
    await staged.discard()
  }
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
