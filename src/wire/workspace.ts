/** Publication of a Workspace package (wire decisions, section 3). The body is not JSON. */
import { WORKSPACE_NAME } from '../value/manifest.ts'
import { idField, text } from './fields.ts'
import { type Infer, schema } from './schema.ts'

/** Header with the expected revision of the HEAD, or `empty`. */
export const EXPECTED_HEAD_HEADER = 'x-service-expected-head'
export const ExpectedHeadField = schema(["'empty'", '|', idField('wsr')])

/** `sha256:` and 64 hex characters. */
export const DigestField = text(/^sha256:[0-9a-f]{64}$/, 'a SHA-256 digest')

export const WorkspaceName = text(WORKSPACE_NAME, 'a Workspace name')

export const Published = schema({
  version: '1',
  workspace: WorkspaceName,
  revisionId: idField('wsr'),
  releaseId: idField('rel'),
  packageDigest: DigestField,
  replayed: 'boolean',
})
export type Published = Infer<typeof Published>
