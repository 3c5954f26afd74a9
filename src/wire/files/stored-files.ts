/** The answer to an upload (contract/wire.md, Grants). */
import { idField, Micros, text, U64 } from '../fields.ts'
import { type Infer, schema } from '../schema.ts'

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
