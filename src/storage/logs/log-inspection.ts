/** Reads of the log and its archive for the doctor: they change neither. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../system/digests.ts'
import { inspectDatabase, integrityOf } from '../../system/inspected-databases.ts'
import { DirectorySegments } from './log-segments.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { lostSince, UnwrittenFile } from './unwritten-file.ts'

export interface LogInspection {
  /** `ok`, or the finding; null if the file has more bytes than are checked. */
  readonly integrity: string | null
  readonly schema: {
    readonly version: number
    readonly known: number
    readonly defect: string | null
  }
  /** Records that were lost and that no record reports yet. */
  readonly lost: number
  readonly segments: number
  readonly segmentsChecked: number
  /** Names of segments that are missing, altered or known to be damaged. */
  readonly damagedSegments: readonly string[]
  /** Time of the oldest record that is in no segment, and of the newest record; null for none. */
  readonly unarchivedAtMicros: number | null
  readonly newestAtMicros: number | null
}

export interface LogInspectionOptions {
  readonly path: string
  readonly unwrittenPath: string
  /** Directory of the segments. */
  readonly directory: string
  /** True while a server writes the log: records in its queue are not lost. */
  readonly isRunning: boolean
  readonly integrityBytesMax: number
  /** Segments, the newest ones, whose bytes are read. All others are compared by their length. */
  readonly segmentsReadMax: number
}

interface SegmentRow {
  readonly name: string
  readonly bytes: number
  readonly digest: Uint8Array
  readonly verified_at: number | null
  readonly place: 'root' | 's3' | 'none'
}

/** Throws SQLiteError and errors of the system where the log cannot be read. */
export function inspectLog(options: LogInspectionOptions): LogInspection {
  return inspectDatabase(options.path, options.isRunning ? 'process' : 'caller', (database) => {
    const integrity = integrityOf(database, options.integrityBytesMax)
    const version = Number(
      Object.values(database.query<object, []>('pragma user_version').get() ?? {})[0],
    )
    const known = MIGRATIONS.length
    const defect =
      version > known ? `logs.db has schema version ${version}, which a newer program wrote` : null
    const base = { integrity, schema: { version, known, defect } }
    if (version !== known) return { ...base, ...NOTHING }
    const one = (sql: string): number | null =>
      database.query<{ value: number | null }, []>(sql).get()?.value ?? null
    const segments = database
      .query<SegmentRow, []>(
        `select name, bytes, digest, verified_at, place from log_segments
          where removed = 0 order by number desc`,
      )
      .all()
    const newest = one('select max(sequence) as value from log_records') ?? 0
    return {
      ...base,
      lost: options.isRunning ? 0 : lostRecords(options.unwrittenPath, newest),
      segments: segments.length,
      ...checkSegments(segments, options),
      unarchivedAtMicros: one(
        `select at as value from log_records
          where sequence > (select coalesce(max(last), 0) from log_segments)
          order by sequence limit 1`,
      ),
      newestAtMicros: one('select at as value from log_records order by sequence desc limit 1'),
    }
  })
}

const NOTHING = {
  lost: 0,
  segments: 0,
  segmentsChecked: 0,
  damagedSegments: [],
  unarchivedAtMicros: null,
  newestAtMicros: null,
}

function checkSegments(
  segments: readonly SegmentRow[],
  { directory, segmentsReadMax }: LogInspectionOptions,
) {
  const damagedSegments: string[] = []
  let segmentsChecked = 0
  const files = existsSync(directory) ? new DirectorySegments(directory) : null
  for (const { name, bytes, digest, verified_at, place } of segments) {
    const isRead = place === 'root' && segmentsChecked < segmentsReadMax
    if (isRead) segmentsChecked += 1
    const isThere = place !== 'root' || files?.size(name) === bytes
    const isWhole = !isRead || sameDigest(files?.get(name) ?? null, digest)
    if (!isThere || !isWhole || verified_at === null) damagedSegments.push(name)
  }
  return { segmentsChecked, damagedSegments }
}

function sameDigest(bytes: Uint8Array | null, digest: Uint8Array): boolean {
  return bytes !== null && Buffer.from(digest).equals(sha256(bytes))
}

function lostRecords(path: string, newest: number): number {
  if (!existsSync(join(path))) return 0
  const file = new UnwrittenFile(path)
  try {
    const { lost } = lostSince(file.read(), newest)
    return lost.rate + lost.queue + lost.failed
  } finally {
    file.close()
  }
}
