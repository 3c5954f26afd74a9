/** Transfers of files: the answer to an upload, and paths (contract/wire.md, Grants). */
import { idField, Micros, text, U64 } from '../fields.ts'
import { type Infer, schema } from '../schema.ts'

/** Longer than any token: a file name has at most 255 bytes. */
const SIGNED_DOWNLOAD = /^rk_url_v1_[A-Za-z0-9_-]{64,600}$/
export const SignedDownload = text(SIGNED_DOWNLOAD, 'the token of a signed URL')

export function isSignedDownload(segment: string): boolean {
  return SIGNED_DOWNLOAD.test(segment)
}

export const StoredFile = schema({
  fileId: idField('fil'),
  uploadId: idField('upl'),
  contentType: 'string',
  size: U64,
  sha256: text(/^[0-9a-f]{64}$/, '64 lowercase hex characters'),
  createdAtMicros: Micros,
})

export const UploadAnswer = schema({
  version: '1',
  status: "'ok'",
  requestId: idField('req'),
  file: StoredFile,
})
export type UploadAnswer = Infer<typeof UploadAnswer>
