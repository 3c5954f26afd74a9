/** Publication of a Workspace package (wire decisions, section 3). The body is no JSON. */
import { WORKSPACE_NAME } from '../value/manifest.ts'
import { idField } from './fields.ts'
import { message } from './schema.ts'

/** Carries `empty` or the revision that the HEAD must be. */
export const EXPECTED_HEAD_HEADER = 'x-service-expected-head'
export const ExpectedHeadField = message("'empty'").or(idField('wsr'))

/** `sha256:` and 64 hex characters. */
export const DigestField = message(/^sha256:[0-9a-f]{64}$/).describe('a SHA-256 digest')

export const WorkspaceName = message(WORKSPACE_NAME).describe('a Workspace name')

export const Published = message({
  version: '1',
  workspace: WorkspaceName,
  revisionId: idField('wsr'),
  releaseId: idField('rel'),
  packageDigest: DigestField,
  replayed: 'boolean',
})
export type Published = typeof Published.infer
