/**
 * Upload grants: bearers for one PUT of one file. The token contains the terms of the upload,
 * sealed under a key of the Environment, so that issuing one stores nothing. A used grant is a
 * document until it has expired. The commit of the file inserts it, so exactly one PUT can use a
 * grant.
 */
import {
  deleteExpiredUploads,
  type FileDocument,
  insertUsedUpload,
  isUsedUpload,
  patchUsedUpload,
  readUpload,
  type UploadFields,
  type UploadTerms,
} from '../../engine/files/file-documents.ts'
import type { UploadGrant, UploadRequest } from '../../engine/files/function-storage.ts'
import type { Transaction } from '../../engine/transactions/transaction.ts'
import type { StagedBlob } from '../../storage/blobs/blobs.ts'
import { Cursors } from '../../storage/cursors.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import { UPLOAD_DOCUMENTS } from '../../value/files/files.ts'
import { requireAdmission } from '../buckets/admission.ts'
import { grantInvalid } from './download-tokens.ts'
import type { FilePorts } from './ports.ts'
import { type NewObject, storeFile } from './store.ts'

/** Prefix of every token, by which the log redacts it. */
export const UPLOAD_PREFIX = 'rk_upl_v1_'
export const UPLOADS_PATH = '/v1/files/uploads/'
/** Maximum grants that one transaction deletes. */
const EXPIRED_MAX = 500

/** A valid grant that a PUT presents. */
export interface PresentedUpload {
  readonly uploadId: string
  readonly terms: UploadTerms
}

/**
 * Issues a grant. Raises FILE_NOT_FOUND for an unknown bucket, LIMIT_EXCEEDED for an archived one,
 * and UNAVAILABLE, for example if the disk is full.
 */
export async function issueUpload(
  { system, keyring, buckets, blobs }: FilePorts,
  request: UploadRequest,
): Promise<UploadGrant> {
  const { bucket, key, contentType, releaseId } = request
  const maximumBytes = BigInt(request.maximumBytes)
  requireAdmission(buckets, bucket, 0n)
  await blobs.requireSpace()
  const uploadId = system.ids.make(UPLOAD_DOCUMENTS)
  const expiresAtMicros = system.nowMicros() + BigInt(request.expiresInSeconds) * 1_000_000n
  const terms = { bucket, key, contentType, maximumBytes, releaseId, expiresAtMicros }
  const token = sealUpload(keyring, uploadId, terms)
  return { uploadId, path: `${UPLOADS_PATH}${uploadId}`, token, expiresAtMicros }
}

/** Returns what the grant admits, without using it. Raises GRANT_INVALID and UNAVAILABLE. */
export async function findUpload(
  ports: FilePorts,
  uploadId: string,
  token: string,
): Promise<PresentedUpload> {
  const stored = await ports.documents.read((transaction) => readUpload(transaction, uploadId))
  const terms = openUpload(ports.keyring, uploadId, token) ?? storedTerms(ports, stored, token)
  if (terms === null) throw grantInvalid('the token does not belong to the upload grant')
  requireUnused(uploadId, stored)
  requireValid(terms, ports.system.nowMicros())
  return { uploadId, terms }
}

/**
 * Reserves the grant for one PUT, which then stores the file or spends the grant. Raises
 * GRANT_INVALID if another PUT has reserved or used it, or if it has expired since, and
 * UNAVAILABLE.
 */
export async function beginUpload(
  ports: FilePorts,
  { uploadId, terms }: PresentedUpload,
): Promise<void> {
  const { uploadsBegun, documents, system } = ports
  if (uploadsBegun.has(uploadId)) throw grantInvalid('the upload grant is in use')
  uploadsBegun.add(uploadId)
  try {
    requireUnused(
      uploadId,
      await documents.read((transaction) => readUpload(transaction, uploadId)),
    )
    requireValid(terms, system.nowMicros())
  } catch (error) {
    uploadsBegun.delete(uploadId)
    throw error
  }
}

/**
 * Stores the file and uses the grant, in one commit. Raises as `storeFile` does, and GRANT_INVALID
 * if the grant was used meanwhile.
 */
export async function storeUpload(
  ports: FilePorts,
  staged: StagedBlob,
  upload: PresentedUpload,
  etag: string | undefined,
): Promise<FileDocument> {
  const { uploadId, terms } = upload
  const { bucket, key, contentType } = terms
  const inCommit = async (transaction: Transaction) => {
    await spend(ports, transaction, upload)
    return 0n
  }
  const object: NewObject = { bucket, key, contentType, uploadId, etag, inCommit }
  const file = await storeFile(ports, staged, object)
  ports.uploadsBegun.delete(uploadId)
  return file
}

/**
 * Uses a grant that was begun and whose file was not stored. Raises UNAVAILABLE and
 * RESULT_UNCERTAIN; the grant then stays reserved until the process ends.
 */
export async function spendUpload(ports: FilePorts, upload: PresentedUpload): Promise<void> {
  await ports.documents.change(async (transaction) => {
    const stored = await readUpload(transaction, upload.uploadId)
    if (stored === null || !isUsedUpload(stored)) await spend(ports, transaction, upload)
  })
  ports.uploadsBegun.delete(upload.uploadId)
}

/** Deletes some used grants that have expired. Returns whether more may be left. */
export async function removeExpiredUploads({ documents, system }: FilePorts): Promise<boolean> {
  const now = system.nowMicros()
  const removed = await documents.change((transaction) =>
    deleteExpiredUploads(transaction, now, EXPIRED_MAX),
  )
  return removed === EXPIRED_MAX
}

/** Throws GRANT_INVALID if the grant is used, and has no effect then. */
async function spend(
  { system }: Pick<FilePorts, 'system'>,
  transaction: Transaction,
  { uploadId, terms }: PresentedUpload,
): Promise<void> {
  const stored = await readUpload(transaction, uploadId)
  requireUnused(uploadId, stored)
  if (stored !== null) await patchUsedUpload(transaction, uploadId)
  else await insertUsedUpload(transaction, uploadId, terms, system.nowMicros())
}

function requireUnused(uploadId: string, stored: UploadFields | null): void {
  if (stored !== null && isUsedUpload(stored)) throw grantInvalid(`${uploadId} was used`)
}

function requireValid({ expiresAtMicros }: UploadTerms, nowMicros: bigint): void {
  if (expiresAtMicros <= nowMicros) throw grantInvalid('the upload grant has expired')
}

/** NUL separates the terms: none of them contains it, and a key is not empty. */
function sealUpload(keyring: Keyring, uploadId: string, terms: UploadTerms): string {
  const { bucket, key, contentType, maximumBytes, releaseId, expiresAtMicros } = terms
  const fields = [bucket, key ?? '', contentType, maximumBytes, releaseId, expiresAtMicros]
  const text = Buffer.from(fields.join('\0')).toString('latin1')
  return UPLOAD_PREFIX + new Cursors(keyring).seal(labelOf(uploadId), text)
}

/** Returns the terms; null for a token that was not sealed for this grant. */
function openUpload(keyring: Keyring, uploadId: string, token: string): UploadTerms | null {
  if (!token.startsWith(UPLOAD_PREFIX)) return null
  const sealed = token.slice(UPLOAD_PREFIX.length)
  const text = new Cursors(keyring).open(labelOf(uploadId), sealed)
  if (text === null) return null
  const fields = Buffer.from(text, 'latin1').toString().split('\0')
  const [bucket, key, contentType, maximumBytes, releaseId, expiresAtMicros] = fields
  return {
    bucket: bucket!,
    key: key === '' ? null : key!,
    contentType: contentType!,
    maximumBytes: BigInt(maximumBytes!),
    releaseId: releaseId!,
    expiresAtMicros: BigInt(expiresAtMicros!),
  }
}

/** Names the grant as cursors name lists; no table has such a name. */
function labelOf(uploadId: string): string {
  return JSON.stringify(['upload-grant', uploadId])
}

/**
 * Returns the terms of a grant that a release before 0.5.0 stored; null if the token does not
 * belong to it.
 */
function storedTerms(
  { keyring }: Pick<FilePorts, 'keyring'>,
  stored: UploadFields | null,
  token: string,
): UploadTerms | null {
  if (stored === null || !keyring.ids.includes(stored.keyId)) return null
  const key = keyring.derive(stored.keyId, 'upload-grant')
  return digestEquals(secretDigest(key, 'upload-grant', token), stored.digest) ? stored : null
}
