/** Reads an increment as the changes of it that a restore applies. */
import type { BackupRecord, RecordOf, Sidecar } from '../../wire/files/backups.ts'
import { type BackupSource, readIncrement } from '../format/backup-reader.ts'
import type { RestoreGoal } from './goals.ts'

export interface RestoredCommit {
  readonly sequence: number
  readonly atMicros: bigint
  readonly documents: RecordOf<'document'>[]
  readonly operations: RecordOf<'operation'>[]
}

export interface Changes {
  /** The commits up to the goal, ascending. */
  readonly commits: readonly RestoredCommit[]
  /** Operations that wrote nothing, and those whose commit the state has already. */
  readonly operations: readonly RecordOf<'operation'>[]
  /** All records but commits, documents and operations. */
  readonly others: readonly BackupRecord[]
  /** The path of the segment, for messages. */
  readonly segment: string
}

export interface ReadChangesOptions {
  readonly sidecar: Sidecar
  /** The state that is restored so far. */
  readonly after: number
  readonly goal: RestoreGoal
}

/**
 * Returns what follows the sequence `after` up to the goal. The whole segment is read and checked.
 * Raises BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function readChanges(
  source: BackupSource,
  { sidecar, after, goal }: ReadChangesOptions,
): Promise<Changes> {
  const commits = new Map<number, RestoredCommit>()
  const operations: RecordOf<'operation'>[] = []
  const others: BackupRecord[] = []
  let segment = ''
  let isPast = false
  let atMicros = BigInt(sidecar.atMicros)
  const commitOf = (sequence: number): RestoredCommit => {
    const known = commits.get(sequence)
    if (known !== undefined) return known
    const commit = { sequence, atMicros, documents: [], operations: [] }
    commits.set(sequence, commit)
    return commit
  }
  for await (const read of readIncrement(source, sidecar)) {
    const { record } = read
    segment = read.segment
    if (record.t === 'commit') {
      atMicros = BigInt(record.atMicros)
      isPast ||= isBeyond(goal, { sequence: record.sequence, atMicros })
      if (!isPast && record.sequence > after) commitOf(record.sequence)
    } else if (record.t === 'document') {
      if (!isPast && record.sequence > after) commitOf(record.sequence).documents.push(record)
    } else if (record.t === 'operation') {
      if (isPast) continue
      const commit = commits.get(record.commitSequence ?? 0)
      ;(commit?.operations ?? operations).push(record)
    } else {
      others.push(record)
    }
  }
  const inOrder = [...commits.values()].sort((a, b) => a.sequence - b.sequence)
  return { commits: inOrder, operations, others, segment }
}

function isBeyond(
  goal: RestoreGoal,
  commit: { readonly sequence: number; readonly atMicros: bigint },
): boolean {
  if (goal.sequence !== null) return commit.sequence > goal.sequence
  return goal.atMicros !== null && commit.atMicros > goal.atMicros
}
