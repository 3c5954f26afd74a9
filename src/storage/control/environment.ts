/** The one row of environment: which Environment the root is, its configuration and revision. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { EnvironmentId, ProjectId } from '../../value/ids.ts'
import type { RootDescriptor } from '../../value/product-root.ts'
import type { ControlReader, ControlTx } from './database.ts'

/** A type and not an interface, so that it is JSON to the compiler too. */
export type EnvironmentConfiguration = {
  name: string
  slug: string
  region: string
  purpose: 'development' | 'preview' | 'staging' | 'production'
  protection: 'none' | 'protected'
  location: string | null
  workspaceTargets: 'allowed' | 'denied'
}

export interface Environment {
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
  /** Of all that the status shows; 0 when nothing was published yet. */
  readonly revision: bigint
  readonly configuration: EnvironmentConfiguration
  /** Of configuration and lifecycle; 0 while both are as `svc init` made them. */
  readonly configurationRevision: bigint
  readonly lifecycle: 'active' | 'archived'
  readonly createdAtMicros: bigint
  readonly updatedAtMicros: bigint
}

interface Row {
  project_id: ProjectId
  environment_id: EnvironmentId
  revision: number
  configuration: string
  configuration_revision: number
  lifecycle: 'active' | 'archived'
  created_at: number
  updated_at: number
}

/** null in a root that was never opened. */
export function findEnvironment(reader: ControlReader): Environment | null {
  const row = reader.get<Row>(
    `select project_id, environment_id, revision, configuration, configuration_revision,
            lifecycle, created_at, updated_at
       from environment`,
  )
  if (row === null) return null
  return {
    projectId: row.project_id,
    environmentId: row.environment_id,
    revision: BigInt(row.revision),
    configuration: JSON.parse(row.configuration) as EnvironmentConfiguration,
    configurationRevision: BigInt(row.configuration_revision),
    lifecycle: row.lifecycle,
    createdAtMicros: BigInt(row.created_at),
    updatedAtMicros: BigInt(row.updated_at),
  }
}

/** A root begins as an open development Environment under the name that `svc init` gave it. */
export function insertEnvironment(tx: ControlTx, descriptor: RootDescriptor): void {
  const configuration: EnvironmentConfiguration = {
    name: descriptor.name,
    slug: descriptor.slug,
    region: 'local',
    purpose: 'development',
    protection: 'none',
    location: null,
    workspaceTargets: 'allowed',
  }
  tx.run(
    `insert into environment (singleton, project_id, environment_id, revision, configuration,
            configuration_revision, lifecycle, created_at, updated_at)
     values (1, ?1, ?2, 0, ?3, 0, 'active', ?4, ?4)`,
    descriptor.projectId,
    descriptor.environmentId,
    canonicalJson(configuration),
    descriptor.createdAtMicros,
  )
}

/** Its next revision of configuration and lifecycle. */
export function updateEnvironment(
  tx: ControlTx,
  { configuration, lifecycle, configurationRevision, updatedAtMicros }: Environment,
): void {
  tx.run(
    `update environment set configuration = ?, lifecycle = ?, configuration_revision = ?,
            updated_at = ?`,
    canonicalJson(configuration),
    lifecycle,
    configurationRevision,
    updatedAtMicros,
  )
}

/** Once in every transaction that changes what the status shows. */
export function advanceRevision(tx: ControlTx): void {
  tx.run('update environment set revision = revision + 1')
}
