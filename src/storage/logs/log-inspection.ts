/** Reads of the log and its archive for the doctor: they change neither. */
import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { inspectDatabase, integrityOf } from '../../system/inspected-databases.ts'
import { NewerLogError, verifyLogVersion } from './log-migrations.ts'
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
  /** The segments that retention has not removed, the newest first. */
  readonly segments: readonly SegmentState[]
  /** Time of the oldest record that is in no segment, and of the newest record; null for none. */
  readonly unarchivedAtMicros: number | null
  readonly newestAtMicros: number | null
}

export interface SegmentState {
  readonly name: string
  readonly bytes: number
  /** SHA-256 in hex. */
  readonly digest: string
  /** False if the server has found it missing or altered. */
  readonly isVerified: boolean
  /** True if its file is in the root, false if it is in an S3-compatible store. */
  readonly isHere: boolean
}

export interface LogInspectionOptions {
  readonly path: string
  readonly unwrittenPath: string
  /** True while a server writes the log: records in its queue are not lost. */
  readonly isRunning: boolean
  readonly integrityBytesMax: number
}

interface SegmentRow {
  readonly name: string
  readonly bytes: number
  readonly digest: Uint8Array
  readonly verified_at: number | null
  readonly place: 'root' | 's3' | 'none'
}

/** A later version may let this one use the file. */
function defectOf(database: Database): string | null {
  try {
    verifyLogVersion(database)
    return null
  } catch (error) {
    if (error instanceof NewerLogError) return error.message
    throw error
  }
}

/** Throws SQLiteError and errors of the system where the log cannot be read. */
export function inspectLog(options: LogInspectionOptions): LogInspection {
  return inspectDatabase(options.path, options.isRunning ? 'process' : 'caller', (database) => {
    const integrity = integrityOf(database, options.integrityBytesMax)
    const version = Number(
      Object.values(database.query<object, []>('pragma user_version').get() ?? {})[0],
    )
    const known = MIGRATIONS.length
    const defect = defectOf(database)
    const base = { integrity, schema: { version, known, defect } }
    if (version < known || defect !== null) return { ...base, ...NOTHING }
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
      segments: segments.map(({ name, bytes, digest, verified_at, place }) => ({
        name,
        bytes,
        digest: Buffer.from(digest).toString('hex'),
        isVerified: verified_at !== null,
        isHere: place === 'root',
      })),
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
  segments: [],
  unarchivedAtMicros: null,
  newestAtMicros: null,
}

function lostRecords(path: string, newest: number): number {
  if (!existsSync(path)) return 0
  const file = new UnwrittenFile(path)
  try {
    const { lost } = lostSince(file.read(), newest)
    return lost.rate + lost.queue + lost.failed
  } finally {
    file.close()
  }
}
