/**
 * Upload grants: bearers for one PUT of one file. Only a keyed digest of the token is stored, with
 * the bounds of the upload. Using a grant deletes it, in a commit that exactly one PUT can make.
 */
import {
  deleteExpiredUploads,
  deleteUpload,
  type FileDocument,
  insertUpload,
  readUpload,
  type UploadFields,
} from '../../engine/files/file-documents.ts'
import type { UploadGrant, UploadRequest } from '../../engine/files/function-storage.ts'
import type { StagedBlob } from '../../storage/blobs/blobs.ts'
import { digestEquals, randomSecret, secretDigest } from '../../system/digests.ts'
import { requireAdmission } from '../buckets/admission.ts'
import { grantInvalid } from './download-tokens.ts'
import type { FilePorts } from './ports.ts'
import { type NewObject, storeFile } from './store.ts'

/** Prefix of every token, by which the log redacts it. */
export const UPLOAD_PREFIX = 'rk_upl_v1_'
export const UPLOADS_PATH = '/v1/files/uploads/'
/** Maximum grants that one transaction deletes. */
const EXPIRED_MAX = 500

/**
 * Issues a grant. Raises FILE_NOT_FOUND for an unknown bucket, LIMIT_EXCEEDED for an archived one,
 * and UNAVAILABLE, for example if the disk is full.
 */
export async function issueUpload(
  { system, keyring, buckets, documents, blobs }: FilePorts,
  request: UploadRequest,
): Promise<UploadGrant> {
  const { bucket, key, contentType, releaseId } = request
  const maximumBytes = BigInt(request.maximumBytes)
  requireAdmission(buckets, bucket, 0n)
  await blobs.requireSpace()
  const token = randomSecret(system, UPLOAD_PREFIX)
  const keyId = keyring.activeId
  const digest = uploadDigest(keyring.derive(keyId, 'upload-grant'), token)
  const expiresAtMicros = system.nowMicros() + BigInt(request.expiresInSeconds) * 1_000_000n
  const upload = { digest, keyId, bucket, key, contentType, maximumBytes, releaseId }
  const uploadId = await documents.change((transaction) =>
    insertUpload(transaction, { ...upload, expiresAtMicros }),
  )
  return { uploadId, path: `${UPLOADS_PATH}${uploadId}`, token, expiresAtMicros }
}

/** Returns what the grant admits, without using it. Raises GRANT_INVALID and UNAVAILABLE. */
export async function findUpload(
  ports: FilePorts,
  uploadId: string,
  token: string,
): Promise<UploadFields> {
  const found = await ports.documents.read((transaction) => readUpload(transaction, uploadId))
  return checked(ports, found, token)
}

/**
 * Deletes the grant. Of concurrent callers exactly one succeeds. Raises GRANT_INVALID, UNAVAILABLE,
 * RESULT_UNCERTAIN.
 */
export async function consumeUpload(
  ports: FilePorts,
  uploadId: string,
  token: string,
): Promise<void> {
  await ports.documents.change(async (transaction) => {
    checked(ports, await readUpload(transaction, uploadId), token)
    await deleteUpload(transaction, uploadId)
  })
}

/** Stores the file of a consumed grant. Raises as `storeFile` does. */
export function storeUpload(
  ports: FilePorts,
  staged: StagedBlob,
  { bucket, key, contentType, uploadId, etag }: NewObject,
): Promise<FileDocument> {
  return storeFile(ports, staged, { bucket, key, contentType, uploadId, etag })
}

/** Deletes some expired grants. Returns whether more may be left. */
export async function removeExpiredUploads({ documents, system }: FilePorts): Promise<boolean> {
  const now = system.nowMicros()
  const removed = await documents.change((transaction) =>
    deleteExpiredUploads(transaction, now, EXPIRED_MAX),
  )
  return removed === EXPIRED_MAX
}

/** Throws GRANT_INVALID unless the token belongs to the grant and the grant has not expired. */
function checked(
  { system, keyring }: FilePorts,
  upload: UploadFields | null,
  token: string,
): UploadFields {
  if (upload === null) throw grantInvalid('the upload grant is unknown or was used')
  const { keyId, digest, expiresAtMicros } = upload
  const isKnown = keyring.ids.includes(keyId)
  const presented = isKnown ? uploadDigest(keyring.derive(keyId, 'upload-grant'), token) : null
  if (presented === null || !digestEquals(presented, digest)) {
    throw grantInvalid('the token does not belong to the upload grant')
  }
  if (expiresAtMicros <= system.nowMicros()) throw grantInvalid('the upload grant has expired')
  return upload
}

function uploadDigest(key: Uint8Array, token: string): Uint8Array {
  return new Uint8Array(secretDigest(key, 'upload-grant', token))
}
