/**
 * The record of an upgrade that has begun to replace files. After a kill at any moment the next run
 * reads it and continues: towards the new version, or back to the previous one.
 */
import { rmSync } from 'node:fs'
import { writeFileAtomic } from '../../system/files.ts'
import { readIfPresent, withPath } from '../files.ts'

/** The directory of files under way, beside the executables, and the journal in it. */
export const WORK_DIRECTORY = '.svc-upgrade'
export const JOURNAL = 'journal.json'

const BYTES_MAX = 16 * 1024

export interface Journal {
  readonly version: 1
  readonly from: string
  readonly to: string
  /** SHA-256 of the executables of both versions. */
  readonly fromDigest: string
  readonly toDigest: string
  /** SHA-256 of the archive, for the receipt. */
  readonly archiveDigest: string
  readonly target: string
  /** The directory of the receipt; null without one. */
  readonly share: string | null
  /** True if the previous version cannot start after the migrations of the new one. */
  readonly isOneWay: boolean
  /** Estimated seconds of these migrations. */
  readonly migrationSeconds: number
  /** True if the server ran when the upgrade began. */
  readonly wasRunning: boolean
  readonly step: 'forward' | 'back'
}

export function readJournal(path: string): Journal | null {
  const bytes = readIfPresent(path, BYTES_MAX)
  if (bytes === null) return null
  try {
    const journal = JSON.parse(Buffer.from(bytes).toString('utf8')) as Journal
    return journal.version === 1 ? journal : null
  } catch {
    return null
  }
}

export function writeJournal(path: string, journal: Journal): void {
  withPath(path, () => writeFileAtomic(path, `${JSON.stringify(journal)}\n`))
}

export function removeJournal(path: string): void {
  withPath(path, () => rmSync(path, { force: true }))
}
