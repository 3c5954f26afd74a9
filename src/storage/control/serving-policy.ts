/** Rows of serving_policies and serving_policy_releases: the desired policy and the served one. */
import type { ReleaseId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export type ServingMode = 'atomic' | 'weighted'

/** A type rather than an interface, so that the compiler accepts it as JSON. */
export type WeightedRelease = {
  releaseId: ReleaseId
  /** 1 to 10,000; the sum over a policy is 10,000. */
  weight: number
}

export interface ServingPolicy {
  /** Starts at 1 and grows by one with each policy. */
  readonly revision: bigint
  readonly mode: ServingMode
  /** Sorted by Release. */
  readonly releases: readonly WeightedRelease[]
  readonly changedAtMicros: bigint
  /** null until all its Releases were ready. */
  readonly convergedAtMicros: bigint | null
}

interface Row {
  revision: number
  mode: ServingMode
  changed_at: number
  converged_at: number | null
}

const POLICY = 'select revision, mode, changed_at, converged_at from serving_policies'

/** Returns null before the first policy. */
export function findDesiredPolicy(reader: ControlReader): ServingPolicy | null {
  return withReleases(reader, reader.get<Row>(`${POLICY} order by revision desc limit 1`))
}

/** Returns the policy to serve while the desired one is not ready. */
export function findConvergedPolicy(reader: ControlReader): ServingPolicy | null {
  return withReleases(
    reader,
    reader.get<Row>(`${POLICY} where converged_at is not null order by revision desc limit 1`),
  )
}

/** Inserts the desired policy and deletes earlier ones that never converged. */
export function insertPolicy(
  tx: ControlTx,
  policy: Omit<ServingPolicy, 'convergedAtMicros'>,
): void {
  tx.run('delete from serving_policies where converged_at is null')
  tx.run(
    'insert into serving_policies (revision, mode, changed_at) values (?, ?, ?)',
    policy.revision,
    policy.mode,
    policy.changedAtMicros,
  )
  for (const { releaseId, weight } of policy.releases) {
    tx.run(
      'insert into serving_policy_releases (revision, release_id, weight) values (?, ?, ?)',
      policy.revision,
      releaseId,
      weight,
    )
  }
}

/** Marks a policy and deletes those before it; no effect on a deleted or converged policy. */
export function markPolicyConverged(tx: ControlTx, revision: bigint, atMicros: bigint): void {
  const changed = tx.run(
    `update serving_policies set converged_at = ?
      where revision = ? and converged_at is null`,
    atMicros,
    revision,
  )
  if (changed === 1) tx.run('delete from serving_policies where revision < ?', revision)
}

function withReleases(reader: ControlReader, row: Row | null): ServingPolicy | null {
  if (row === null) return null
  const releases = reader.all<{ release_id: ReleaseId; weight: number }>(
    `select release_id, weight from serving_policy_releases
      where revision = ? order by release_id`,
    row.revision,
  )
  return {
    revision: BigInt(row.revision),
    mode: row.mode,
    releases: releases.map(({ release_id, weight }) => ({ releaseId: release_id, weight })),
    changedAtMicros: BigInt(row.changed_at),
    convergedAtMicros: row.converged_at === null ? null : BigInt(row.converged_at),
  }
}
