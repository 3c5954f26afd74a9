/** State of the Environment (contract/wire.md, Environment state). */
import { idField, Micros, Name, Revision, text, U64 } from './fields.ts'
import { OperationField } from './idempotency-records.ts'
import { type Infer, schema } from './schema.ts'

/** Bytes of a body with a configuration (contract/management.md, Limits). */
export const ENVIRONMENT_BODY_BYTES_MAX = 72 * 1024

/** The complete configuration, which a change replaces as a whole. */
export const EnvironmentConfigurationField = schema({
  name: Name,
  slug: text(/^[a-z][a-z0-9-]{0,62}$/, 'a slug such as my-app'),
  /** A label whose meaning the operator defines. */
  region: text(/^[a-z][a-z0-9-]{0,62}$/, 'a region such as eu-west'),
  purpose: "'development' | 'preview' | 'staging' | 'production'",
  protection: "'none' | 'protected'",
  location: [Name, '|', 'null'],
  workspaceTargets: "'allowed' | 'denied'",
})
export type EnvironmentConfigurationField = Infer<typeof EnvironmentConfigurationField>

export const EnvironmentCreate = schema({
  configuration: EnvironmentConfigurationField,
  changedAtMicros: Micros,
})

export const EnvironmentUpdate = schema({
  configuration: EnvironmentConfigurationField,
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const EnvironmentLifecycleChange = schema({
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const EnvironmentState = schema({
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
export type EnvironmentState = Infer<typeof EnvironmentState>

export const EnvironmentChanged = schema({ '...': EnvironmentState, operation: OperationField })
export type EnvironmentChanged = Infer<typeof EnvironmentChanged>
