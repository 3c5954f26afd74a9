/** Checks of the arguments of `ctx.storage`, whose messages are for the author. */
import type {
  DownloadOperation,
  ObjectOperand,
  UploadOperand,
} from '../../runner/protocol/file-operations.ts'
import {
  FILE_BYTES_MAX,
  FILE_DOCUMENTS,
  isBucketName,
  isContentType,
  isFileName,
  isObjectKey,
} from '../../value/files/files.ts'
import { isId } from '../../value/ids.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { FunctionStorage, UploadGrant } from './function-storage.ts'

/** The methods of `ctx.storage` that make a grant to download a file. */
export const DOWNLOAD_METHODS = {
  grantDownload: 'createDownload',
  signDownload: 'createDownloadUrl',
} as const

/** Throws OperationError unless the ID is that of a file and the name is a valid file name. */
export function checkDownload([type, fileId, { fileName }]: DownloadOperation): void {
  const method = DOWNLOAD_METHODS[type]
  checkFileId(method, fileId)
  if (fileName === null || isFileName(fileName)) return
  const rule = 'without / and \\, control characters and controls of the direction of text'
  throw invalid(method, `fileName is a name of 1 to 255 bytes ${rule}`)
}

export function checkFileId(method: string, fileId: string): void {
  if (isId(FILE_DOCUMENTS, fileId)) return
  throw invalid(method, `"${fileId.slice(0, 100)}" is not the ID of a file`, 'TypeError')
}

/** Throws OperationError where the method may not use these names. */
export function checkObject(method: string, { bucket, key, contentType }: ObjectOperand): void {
  if (!isBucketName(bucket)) {
    const rule = '3 to 63 lower-case letters, digits and hyphens, such as "default"'
    throw invalid(method, `bucket has ${rule}`)
  }
  if (key !== null && !isObjectKey(key)) {
    throw invalid(method, 'key has 1 to 1,024 bytes of UTF-8, without NUL')
  }
  if (!isContentType(contentType)) {
    throw invalid(method, 'contentType is a media type, such as "image/png"')
  }
}

export function checkUpload(upload: UploadOperand): void {
  checkObject('createUpload', upload)
  const { maximumBytes } = upload
  if (maximumBytes >= 0 && maximumBytes <= FILE_BYTES_MAX) return
  throw invalid('createUpload', `maximumBytes is a whole number from 0 to ${FILE_BYTES_MAX}`)
}

export function noFile(method: string, fileId: string): OperationError {
  const message = `ctx.storage.${method}: there is no file "${fileId}"`
  return new OperationError('Error', message, 'FILE_NOT_FOUND')
}

/** Makes a grant to download a file; returns its stored JSON. */
export function downloadText(
  storage: Pick<FunctionStorage, 'issueDownload' | 'signDownload'>,
  operation: DownloadOperation,
  nowMicros: bigint,
): string {
  const [type, fileId, operand] = operation
  if (type === 'signDownload') {
    const { path, expiresAtMicros } = storage.signDownload({ fileId, nowMicros, ...operand })
    return JSON.stringify({ path, expiresAt: { $t: String(expiresAtMicros) } })
  }
  const { path, token, expiresAtMicros } = storage.issueDownload({ fileId, nowMicros, ...operand })
  return JSON.stringify({ path, token, expiresAt: { $t: String(expiresAtMicros) } })
}

/** Returns the stored JSON of an upload grant. */
export function uploadGrantText(grant: UploadGrant, maximumBytes: number): string {
  const { path, token, uploadId, expiresAtMicros } = grant
  const expiresAt = { $t: String(expiresAtMicros) }
  return JSON.stringify({ path, token, expiresAt, uploadId: { $d: uploadId }, maximumBytes })
}

function invalid(method: string, rule: string, name = 'RangeError'): OperationError {
  return new OperationError(name, `ctx.storage.${method}: ${rule}`)
}
