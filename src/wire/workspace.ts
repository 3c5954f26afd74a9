/**
 * Publication of a Workspace package (contract/wire.md, Workspace package). The body is not JSON.
 */
import { WORKSPACE_NAME } from '../value/manifest.ts'
import {
  BRANCH_CHARACTERS_MAX,
  COMMIT,
  isLine,
  MESSAGE_CHARACTERS_MAX,
  PROVENANCE_BYTES_MAX,
  RUN_ID_CHARACTERS_MAX,
  RUN_PROVIDER,
  RUN_URL,
} from '../value/packages/provenance.ts'
import { documented, idField, text } from './fields.ts'
import { rule } from './rules.ts'
import { type Infer, type Schema, schema } from './schema.ts'

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

/** Header with base64url of a JSON text, as headers carry ASCII alone. */
export const PROVENANCE_HEADER = 'x-service-provenance'

function line(max: number): Schema<string> {
  const rules = `1 to ${max} characters in NFC without control characters`
  const bounds = { minLength: 1, maxLength: max, description: rules }
  return schema(['string', ':', rule(rules, (text: string) => isLine(text, max), bounds)])
}

export const Provenance = schema({
  message: [line(MESSAGE_CHARACTERS_MAX), '|', 'null'],
  commit: [text(COMMIT, 'the name of a Git commit'), '|', 'null'],
  branch: [line(BRANCH_CHARACTERS_MAX), '|', 'null'],
  /** True if files of the Workspace differed from the commit. */
  dirty: 'boolean | null',
  run: [
    {
      provider: text(RUN_PROVIDER, 'a name such as github'),
      id: line(RUN_ID_CHARACTERS_MAX),
      url: [text(RUN_URL, 'an HTTP URL'), '|', 'null'],
    },
    '|',
    'null',
  ],
})
export type Provenance = Infer<typeof Provenance>

/** 4 characters for 3 bytes. */
const CHARACTERS_MAX = Math.ceil((PROVENANCE_BYTES_MAX * 4) / 3)

export const ProvenanceHeader = documented(
  text(new RegExp(`^[A-Za-z0-9_-]{2,${CHARACTERS_MAX}}$`), 'base64url of a provenance'),
  {
    description:
      'Base64url without padding of the JSON text of a Provenance. It is stored beside the ' +
      'revision; a repeated publication keeps the first one.',
  },
)
