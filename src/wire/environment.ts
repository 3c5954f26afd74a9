/** State of the Environment (wire decisions, section 3). */
import { idField, Micros, Name, Revision, U64 } from './fields.ts'
import { OperationField } from './operations.ts'
import { message } from './schema.ts'

/** Bytes of a body with a configuration (Document 1, Limits). */
export const ENVIRONMENT_BODY_BYTES_MAX = 72 * 1024

/** Complete: a change replaces all of it. */
export const EnvironmentConfigurationField = message({
  name: Name,
  slug: message(/^[a-z][a-z0-9-]{0,62}$/).describe('a slug such as my-app'),
  /** Logical; what it means is the operator's. */
  region: message(/^[a-z][a-z0-9-]{0,62}$/).describe('a region such as eu-west'),
  purpose: "'development' | 'preview' | 'staging' | 'production'",
  protection: "'none' | 'protected'",
  location: Name.or('null'),
  workspaceTargets: "'allowed' | 'denied'",
})
export type EnvironmentConfigurationField = typeof EnvironmentConfigurationField.infer

export const EnvironmentCreate = message({
  configuration: EnvironmentConfigurationField,
  changedAtMicros: Micros,
})

export const EnvironmentUpdate = message({
  configuration: EnvironmentConfigurationField,
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const EnvironmentLifecycleChange = message({
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const EnvironmentState = message({
  version: '1',
  projectId: idField('prj'),
  environmentId: idField('env'),
  desired: {
    revision: U64,
    lifecycle: "'active' | 'archived'",
    configuration: EnvironmentConfigurationField,
  },
  observed: {
    revision: U64,
    lifecycle: "'active' | 'archived'",
    serving: "'stopped' | 'starting' | 'serving'",
  },
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
})
export type EnvironmentState = typeof EnvironmentState.infer

export const EnvironmentChanged = EnvironmentState.merge({ operation: OperationField })
export type EnvironmentChanged = typeof EnvironmentChanged.infer
