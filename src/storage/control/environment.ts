/** The only row of environment: the root's Environment, its configuration and revisions. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { EnvironmentId, HistoryId, ProjectId } from '../../value/ids.ts'
import type { RootDescriptor } from '../../value/product-root.ts'
import type { ControlReader, ControlTx } from './database.ts'

/** A type rather than an interface, so that the compiler accepts it as JSON. */
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
  /** Revision of everything that the status shows; 0 before the first publication. */
  readonly revision: bigint
  readonly configuration: EnvironmentConfiguration
  /** Revision of configuration and lifecycle; 0 until the first change after `svc init`. */
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

/** Returns null in a root that was never opened. */
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

/** Inserts the first state: an unprotected development Environment named by `svc init`. */
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

/** Stores the next revision of configuration and lifecycle. */
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

/** Advances the status revision; every transaction that changes the status calls it once. */
export function advanceRevision(tx: ControlTx): void {
  tx.run('update environment set revision = revision + 1')
}

/** Returns the newest durable sequence of the documents that was recorded; 0 for none. */
export function readDocumentsSequence(reader: ControlReader): number {
  return reader.get<{ documents_sequence: number }>('select documents_sequence from environment')!
    .documents_sequence
}

/** Records the newest durable sequence of the documents, which is not part of the status. */
export function recordDocumentsSequence(tx: ControlTx, sequence: number): void {
  tx.run('update environment set documents_sequence = ?', sequence)
}

/** Returns the history that backups of the root continue; null before `beginHistory`. */
export function findHistory(reader: ControlReader): HistoryId | null {
  return (
    reader.get<{ history_id: HistoryId | null }>('select history_id from environment')
      ?.history_id ?? null
  )
}

/** Begins another history: backups of the data before it are not continued. */
export function beginHistory(tx: ControlTx, historyId: HistoryId): void {
  tx.run('update environment set history_id = ?', historyId)
}
