/** State of the Environment (wire decisions, section 3). */
import * as z from 'zod'
import { idField, Micros, Name, Revision, text, U64 } from './fields.ts'
import { OperationField } from './operations.ts'

/** Bytes of a body with a configuration (Document 1, Limits). */
export const ENVIRONMENT_BODY_BYTES_MAX = 72 * 1024

/** Complete: a change replaces all of it. */
export const EnvironmentConfigurationField = z.strictObject({
  name: Name,
  slug: text(/^[a-z][a-z0-9-]{0,62}$/, 'a slug such as my-app'),
  /** Logical; what it means is the operator's. */
  region: text(/^[a-z][a-z0-9-]{0,62}$/, 'a region such as eu-west'),
  purpose: z.enum(['development', 'preview', 'staging', 'production']),
  protection: z.enum(['none', 'protected']),
  location: Name.nullable(),
  workspaceTargets: z.enum(['allowed', 'denied']),
})
export type EnvironmentConfigurationField = z.infer<typeof EnvironmentConfigurationField>

export const EnvironmentCreate = z.strictObject({
  configuration: EnvironmentConfigurationField,
  changedAtMicros: Micros,
})

export const EnvironmentUpdate = z.strictObject({
  configuration: EnvironmentConfigurationField,
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const EnvironmentLifecycleChange = z.strictObject({
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

export const EnvironmentState = z.strictObject({
  version: z.literal(1),
  projectId: idField('prj'),
  environmentId: idField('env'),
  desired: z.strictObject({
    revision: U64,
    lifecycle: z.enum(['active', 'archived']),
    configuration: EnvironmentConfigurationField,
  }),
  observed: z.strictObject({
    revision: U64,
    lifecycle: z.enum(['active', 'archived']),
    serving: z.enum(['stopped', 'starting', 'serving']),
  }),
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
})
export type EnvironmentState = z.infer<typeof EnvironmentState>

export const EnvironmentChanged = EnvironmentState.extend({ operation: OperationField })
export type EnvironmentChanged = z.infer<typeof EnvironmentChanged>
