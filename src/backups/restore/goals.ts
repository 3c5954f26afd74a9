/** Selects the segments of a backup that lead to the state that is to be restored. */
import { Fault } from '../../errors/fault.ts'
import type { Sidecar } from '../../wire/files/backups.ts'
import { type BackupSource, readIncrement } from '../format/backup-reader.ts'
import {
  type HistoryAddress,
  joinIncrements,
  type SelectedBackup,
  selectBackup,
} from '../format/chain.ts'
import type { BackupFiles } from '../targets/targets.ts'

/** The state to restore: the newest one where both are null. At most one of them is not. */
export interface RestoreGoal {
  /** The newest state up to this sequence. */
  readonly sequence: number | null
  /** The newest state up to this time. */
  readonly atMicros: bigint | null
}

export const NEWEST: RestoreGoal = { sequence: null, atMicros: null }

export interface SelectedRestore {
  readonly backup: SelectedBackup
  /** Increments and catch-ups after the base, in order. The last one may go beyond the goal. */
  readonly increments: readonly Sidecar[]
  /** Other segments, which are read for the names of the bytes of files alone. */
  readonly naming: readonly Sidecar[]
  readonly goal: RestoreGoal
}

/**
 * Checks the chain of all segments that a restore reads. Raises RESTORE_POINT_NOT_FOUND where no
 * segments lead to the goal, BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function selectRestore(
  source: BackupSource,
  address: HistoryAddress,
  goal: RestoreGoal,
): Promise<SelectedRestore> {
  const backup = await selectBase(source.target, address, goal)
  const { increments } = joinIncrements(backup)
  const selected: Sidecar[] = []
  // Written after the time. They belong to it only if a commit from before it follows.
  let later: Sidecar[] = []
  let reached = backup.base.toSequence
  for (const increment of increments) {
    if (goal.sequence !== null && reached === goal.sequence && increment.toSequence > reached) break
    const isPast = goal.atMicros !== null && BigInt(increment.atMicros) > goal.atMicros
    // It has the newest versions alone, so no state within it is known.
    if (increment.kind === 'catchup' && isPast) break
    if (increment.kind === 'catchup' && goal.sequence !== null) {
      requireOutside(increment, Math.max(reached, increment.fromSequence), goal.sequence)
    }
    later.push(increment)
    const times = isPast ? await commitTimes(source, increment, reached) : null
    if (isPast && times === null) continue
    if (times !== null && times.first > goal.atMicros!) break
    selected.push(...later)
    later = []
    reached = Math.max(reached, increment.toSequence)
    const isReached = times !== null && times.last > goal.atMicros!
    if (isReached || (goal.sequence !== null && reached > goal.sequence)) break
  }
  if (goal.sequence !== null && reached < goal.sequence) {
    throw notFound(`the newest sequence that can be restored is ${reached}`)
  }
  return { backup, increments: selected, naming: namingSegments(backup, selected, reached), goal }
}

/**
 * Returns the times of the first and of the last commit after a sequence; null if there is none. An
 * increment may be written while later commits wait for the next one, so its own time does not tell
 * where the commits before a time end.
 */
async function commitTimes(
  source: BackupSource,
  sidecar: Sidecar,
  after: number,
): Promise<{ readonly first: bigint; readonly last: bigint } | null> {
  if (sidecar.toSequence <= after) return null
  let first: bigint | null = null
  let last = 0n
  for await (const { record } of readIncrement(source, sidecar)) {
    if (record.t !== 'commit' || record.sequence <= after) continue
    last = BigInt(record.atMicros)
    first ??= last
  }
  return first === null ? null : { first, last }
}

/**
 * Returns the segments that name bytes of files of the documents up to a sequence, without those
 * that are restored: storing the bytes of a file may take longer than the increment with its
 * document.
 */
function namingSegments(
  { base, segments }: SelectedBackup,
  increments: readonly Sidecar[],
  sequence: number,
): readonly Sidecar[] {
  const last = increments.at(-1) ?? base
  const end = segments.findIndex(
    ({ number, runFiles }) => number >= last.number && runFiles >= sequence,
  )
  const restored = new Set([...increments, base].map(({ number }) => number))
  return segments
    .slice(0, end === -1 ? segments.length : end + 1)
    .filter(({ number, backupId }) => !restored.has(number) && backupId !== base.backupId)
}

async function selectBase(
  target: BackupFiles,
  address: HistoryAddress,
  goal: RestoreGoal,
): Promise<SelectedBackup> {
  let oldest: Sidecar | null = null
  const isWithin = (base: Sidecar) => {
    oldest = base
    if (goal.sequence !== null) return base.toSequence <= goal.sequence
    return goal.atMicros === null || BigInt(base.atMicros) <= goal.atMicros
  }
  try {
    return await selectBackup(target, address, isWithin)
  } catch (error) {
    const found = oldest as Sidecar | null
    if (found === null || isWithin(found)) throw error
    throw notFound(`the oldest sequence that can be restored is ${found.toSequence}`)
  }
}

function requireOutside(catchup: Sidecar, from: number, sequence: number): void {
  if (sequence <= from || sequence >= catchup.toSequence) return
  throw notFound(
    `the server was not running its backups between the sequences ${from} and ` +
      `${catchup.toSequence}: choose one of them`,
  )
}

function notFound(detail: string): Fault {
  return new Fault('RESTORE_POINT_NOT_FOUND', { detail })
}
