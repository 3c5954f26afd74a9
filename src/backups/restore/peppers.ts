/**
 * The peppers of a backup, and what the restored identity database needs. A backup has them only
 * where the settings of its server said so (docs/backup.md).
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  PEPPERS_DIRECTORY,
  RESTORED_PEPPER_FILE,
  RESTORED_SUBJECT_PEPPERS_FILE,
} from '../../storage/root.ts'
import { writeFileAtomic } from '../../system/files.ts'
import { Secret } from '../../value/secret.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import type { VerifiedSegments } from './verified-backup.ts'

export interface RestoredPeppers {
  /** The pepper of the identity database; null if the backup does not have it. */
  readonly identity: Secret | null
  /** The check of that pepper; null if none is recorded. */
  readonly identityCheck: Uint8Array | null
  /** IDs of the identity providers whose `subjectPepper` the backup has. */
  readonly subjects: readonly string[]
  /** IDs of those whose identity links need one that the backup does not have. */
  readonly missingSubjects: readonly string[]
}

/** The check of a subject pepper has the ID of its provider after this. */
const SUBJECT_CHECK = 'oidc-subject:'

export function peppersOf({ environment, contents }: VerifiedSegments): RestoredPeppers {
  const { pepper, subjectPeppers = {} } = environment
  const subjects = Object.keys(subjectPeppers).sort()
  const missingSubjects: string[] = []
  let identityCheck: Uint8Array | null = null
  for (const row of contents.rows('identity', 'service_platform_pepper_checks')) {
    const { pepper: name, check_digest: digest } = row
    if (name === 'identity' && digest != null) identityCheck = Buffer.from(digest.slice(2), 'hex')
    if (!name?.startsWith(SUBJECT_CHECK)) continue
    const providerId = name.slice(SUBJECT_CHECK.length)
    if (!Object.hasOwn(subjectPeppers, providerId)) missingSubjects.push(providerId)
  }
  const identity = pepper === undefined ? null : new Secret(pepper)
  return { identity, identityCheck, subjects, missingSubjects }
}

/** Writes the peppers that the backup has into private files of the root, if it has any. */
export function writePeppers(
  root: string,
  { pepper, subjectPeppers = {} }: RecordOf<'environment'>,
): void {
  if (pepper === undefined) return
  mkdirSync(join(root, PEPPERS_DIRECTORY), { mode: 0o700 })
  writeFileAtomic(join(root, RESTORED_PEPPER_FILE), pepper)
  if (Object.keys(subjectPeppers).length === 0) return
  const json = `${JSON.stringify(subjectPeppers, null, 2)}\n`
  writeFileAtomic(join(root, RESTORED_SUBJECT_PEPPERS_FILE), json)
}
