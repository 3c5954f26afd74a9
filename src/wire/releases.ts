/**
 * Checks, validation and retirement of a Release (contract/wire.md, Release states), and the HEAD
 * of a Workspace as development keys see and freeze it (contract/wire.md, Development routes).
 */
import { ChannelName } from './channels.ts'
import { idField, Micros } from './fields.ts'
import { type Infer, schema } from './schema.ts'
import { DigestField, WorkspaceName } from './workspace.ts'

export const ReleaseStateField = schema("'published' | 'validated' | 'rejected' | 'retired'")

export const ValidateRequest = schema({ 'against?': ChannelName })

export const CheckField = schema({
  name: 'string',
  outcome: "'passed' | 'failed'",
  detail: 'string',
})

export const CheckQuery = schema({
  /** A Channel whose Release the schema must stay compatible with. */
  'against?': ChannelName,
})

const ChangeOutcome = schema("'allowed' | 'documents'")

/** A difference between the schemas of a package and of a served Release. */
const SchemaChangeField = schema({
  table: 'string',
  /** A field or an index; empty for a table. */
  path: 'string',
  change: 'string',
  /** `documents` if a look at the stored documents decides. */
  promote: ChangeOutcome,
  rollback: ChangeOutcome,
  /** The reasons why the two Releases cannot serve side by side; empty if they can. */
  refusals: 'string[]',
})

/** A package that was checked and not published. */
export const PackageChecked = schema({
  version: '1',
  workspace: WorkspaceName,
  packageDigest: DigestField,
  /** True if every check passed. Checks stop after the first kind that fails. */
  compatible: 'boolean',
  checks: [CheckField, '[]'],
  /** The changes against each Release that a Channel or the serving policy names. */
  'served?': [
    {
      releaseId: idField('rel'),
      uses: 'string[]',
      changes: [SchemaChangeField, '[]'],
      /** Number of changes beyond those listed. */
      omitted: 'number',
    },
    '[]',
  ],
})
export type PackageChecked = Infer<typeof PackageChecked>

export const Validated = schema({
  version: '1',
  releaseId: idField('rel'),
  state: ReleaseStateField,
  checks: [CheckField, '[]'],
  validatedAtMicros: Micros,
})
export type Validated = Infer<typeof Validated>

export const WorkspaceState = schema({
  version: '1',
  /** The Project that a package of the Workspace must name. */
  projectId: idField('prj'),
  environmentId: idField('env'),
  workspace: WorkspaceName,
  /** Null for a Workspace without a revision. */
  head: [
    {
      revisionId: idField('wsr'),
      releaseId: idField('rel'),
      state: ReleaseStateField,
      packageDigest: DigestField,
    },
    '|',
    'null',
  ],
})
export type WorkspaceState = Infer<typeof WorkspaceState>

export const FreezeRequest = schema({
  version: '1',
  /** The revision that must be the HEAD, unless its Release is decided already. */
  revisionId: idField('wsr'),
})

export const Frozen = schema({
  version: '1',
  releaseId: idField('rel'),
  /** `validated`, or with a failed check `published` or `rejected`. */
  state: ReleaseStateField,
  checks: [CheckField, '[]'],
})
export type Frozen = Infer<typeof Frozen>

export const Retired = schema({
  version: '1',
  releaseId: idField('rel'),
  state: "'retired'",
})
export type Retired = Infer<typeof Retired>
