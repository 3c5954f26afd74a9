/** State of the Environment (wire decisions, section 3). */
import { idField, Micros, Name, U64 } from './fields.ts'
import { message } from './schema.ts'

export const EnvironmentConfigurationField = message({
  name: Name,
  slug: message(/^[a-z][a-z0-9-]{0,62}$/).describe('a slug such as my-app'),
  region: 'string',
  purpose: "'development' | 'preview' | 'staging' | 'production'",
  protection: "'none' | 'protected'",
  location: 'string | null',
  workspaceTargets: "'allowed' | 'denied'",
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
