/**
 * PUT /v1/files/uploads/{uploadId}: uses one upload grant. The grant is used up when the first byte
 * of the body, or the end of an empty body, arrives. An earlier rejection leaves the grant usable.
 */
import type { FileDocument, UploadTerms } from '../../../engine/files/file-documents.ts'
import { Fault } from '../../../errors/fault.ts'
import {
  beginUpload,
  findUpload,
  type PresentedUpload,
  spendUpload,
  storeUpload,
} from '../../../product/files/uploads.ts'
import { checksumStream } from '../../../system/checksums.ts'
import { inSlices } from '../../../system/event-loop.ts'
import { FILE_BYTES_MAX, UPLOAD_DOCUMENTS } from '../../../value/files/files.ts'
import type { UploadAnswer } from '../../../wire/files/stored-files.ts'
import { isCompressed, streamBody } from '../../bodies.ts'
import { APPLICATION_CODES } from '../../errors.ts'
import { peerOf } from '../../rate-limits.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import { requireId, withGrant } from './grants.ts'

export async function receiveUpload(
  gateway: Gateway,
  incoming: Incoming,
  uploadId: string,
): Promise<Response> {
  const { request, requestId, binding } = incoming
  requireId(UPLOAD_DOCUMENTS, uploadId)
  const granted = await withGrant(gateway, incoming, (token) =>
    findUpload(gateway.files, uploadId, token),
  )
  checkHead(request, granted.terms)
  const release = await gateway.transfers.uploads.acquire(peerOf(binding))
  binding.takeTime?.()
  try {
    const file = await receive(gateway, request, granted)
    const { size, createdAtMicros, contentType, sha256, fileId } = file
    gateway.counts.transferred('uploaded', Number(size))
    const times = { size: String(size), createdAtMicros: String(createdAtMicros) }
    const shown = { fileId, uploadId, contentType, sha256, ...times }
    const body = { version: 1, status: 'ok', requestId, file: shown } as UploadAnswer
    return Response.json(body, { status: 201, headers: { 'cache-control': 'no-store' } })
  } finally {
    binding.returnTime?.()
    release()
  }
}

/** Throws MEDIA_TYPE_UNSUPPORTED and LIMIT_EXCEEDED. */
function checkHead({ headers }: Request, { contentType, maximumBytes }: UploadTerms): void {
  const sent = headers.get('content-type')
  if ((sent !== null && sent !== contentType) || isCompressed(headers)) {
    throw new Fault('MEDIA_TYPE_UNSUPPORTED', { detail: 'not the type of the upload grant' })
  }
  if (declaredLength(headers) > maximumBytes) throw tooLarge(maximumBytes)
}

function declaredLength(headers: Headers): number {
  return Number(headers.get('content-length') ?? 0)
}

async function receive(
  gateway: Gateway,
  request: Request,
  granted: PresentedUpload,
): Promise<FileDocument> {
  const { files, log } = gateway
  const { uploadId, terms } = granted
  const staged = await files.blobs.stage(declaredLength(request.headers))
  // S3 clients see files that have a key, and expect the MD5 as entity tag.
  const md5 = terms.key === null ? null : checksumStream('md5')
  let received = 0
  let isUsed = false
  try {
    // A body that is cut with its connection fails here: the runtime distinguishes it from the end.
    for await (const chunk of streamOf(gateway, request)) {
      if (!isUsed) await beginUpload(files, granted)
      isUsed = true
      received += chunk.length
      if (received > terms.maximumBytes) throw tooLarge(terms.maximumBytes)
      if (md5 !== null) await inSlices(chunk, (slice) => void md5.update(slice))
      await staged.write(chunk)
    }
    if (!isUsed) await beginUpload(files, granted)
    isUsed = true
    const etag = md5 === null ? undefined : md5.digest().toHex()
    return await storeUpload(files, staged, granted, etag)
  } catch (error) {
    // The grant is used up and nothing was stored, so the application must create another grant.
    if (isUsed) {
      log.warn('files.upload_failed', { uploadId, received, error })
      await spendUpload(files, granted).catch((cause: unknown) => {
        log.warn('files.grant_not_spent', { uploadId, error: cause })
      })
    }
    throw error
  } finally {
    await staged.discard()
  }
}

function streamOf({ transfers }: Gateway, request: Request): AsyncIterable<Uint8Array> {
  return streamBody(
    request,
    FILE_BYTES_MAX,
    APPLICATION_CODES,
    transfers.uploadPace,
    transfers.turns,
  )
}

function tooLarge(maximumBytes: bigint): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail: `the grant is for ${maximumBytes} bytes` })
}
