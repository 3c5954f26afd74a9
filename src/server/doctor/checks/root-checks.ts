/** Checks of the Product root: owner and modes, control database, artifacts, files, log. */
import {
  check,
  failed,
  listed,
  mebibytes,
  notRead,
  ok,
  seconds,
  shellPath,
  skipped,
  type Verdict,
  warning,
} from '../check.ts'
import type { PermissionsReading, Reading, Readings, SampleReading } from '../readings.ts'
import { judgeSchema } from './postgres-checks.ts'

const MIB = 1024 * 1024
/** The log is cut to 64 MiB; twice as much means that a reader keeps checkpoints from ending. */
const WAL_BYTES_GOOD = 128 * MIB
const AUDIT_MILLIS_GOOD = 3_600_000
const AUDIT_RECORDS_GOOD = 10_000
/** A segment is closed within ten seconds of its age. */
const SEGMENT_DELAY_MILLIS = 600_000
const VERIFY = 'svc-server verify-storage'

export const ROOT_CHECKS = [
  check({
    name: 'root-lock',
    why:
      'One process owns a Product root; what needs the lock is not checked while a server ' +
      'holds it.',
    repair: 'svc-server check',
    reads: ({ lock }) => lock,
    judge: (state) => {
      if (state === 'running') {
        return ok('a server runs on the root: `svc doctor` checks the rest')
      }
      if (state === 'never started') return ok('no server was started on the root yet')
      return ok(state === 'stopped' ? 'no server runs on the root' : 'this server has the lock')
    },
  }),
  permissions('root-permissions', ({ rootPermissions }) => rootPermissions, {
    why:
      'The root has all keys and documents: the server does not start if others can read or ' +
      'write its files, or if they have another owner.',
  }),
  permissions('root-content-permissions', ({ contentPermissions }) => contentPermissions, {
    why:
      'Artifacts are executed, and stored files and logs are private: no other user may read ' +
      'or write them.',
  }),
  permissions('state-permissions', ({ statePermissions }) => statePermissions, {
    why: 'The directory has codes that make their reader an owner.',
  }),
  check({
    name: 'control-integrity',
    why: 'A damaged control database loses Releases, keys and configuration.',
    repair: 'svc docs backup',
    reads: ({ control }) => control,
    judge: ({ integrity, foreignKeyBreaks }) => {
      if (integrity === null) return skipped('too large to be checked here')
      if (integrity !== 'ok') return failed(`control.db: ${integrity}`)
      return foreignKeyBreaks > 0
        ? failed(`control.db: ${foreignKeyBreaks} rows refer to rows that are missing`)
        : ok('control.db is consistent')
    },
  }),
  check({
    name: 'control-schema',
    why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
    repair: 'svc-server serve',
    reads: ({ control }) => control,
    unread: notRead,
    judge: ({ schema }) => judgeSchema(schema),
  }),
  check({
    name: 'control-environment',
    why:
      'The server does not start if service.json and control.db belong to different ' +
      'Environments.',
    repair: 'svc docs backup',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    judge: ({ isSameEnvironment }) =>
      isSameEnvironment
        ? ok('service.json and control.db belong together')
        : failed('service.json and control.db belong to different Environments'),
  }),
  check({
    name: 'keyring',
    why:
      'What was sealed or signed with a key that is missing is lost: secrets, keys of ' +
      'applications, signed URLs.',
    repair: 'svc docs backup',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    judge: ({ missingKeys, keys }) =>
      missingKeys.length === 0
        ? ok(`${keys} keys, and every one that control.db was written with`)
        : failed(`keyring.json lacks ${listed(missingKeys)}`),
  }),
  check({
    name: 'sealed-secrets',
    why: 'An Action that needs a secret which no key opens fails.',
    repair: 'svc config set NAME --secret',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    judge: ({ sealedSecrets, unopenedSecrets }) =>
      unopenedSecrets.length === 0
        ? ok(`${sealedSecrets} secrets of the configuration can be opened`)
        : failed(`cannot be opened: ${listed(unopenedSecrets)}`),
  }),
  check({
    name: 'audit-delivery',
    why: 'Changes of the Environment are missing from the security audit until they are delivered.',
    repair: 'svc health',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    judge: ({ pendingAudit, oldestPendingAuditMillis }) => {
      const age = seconds(oldestPendingAuditMillis)
      const seen = `${pendingAudit} records wait, the oldest for ${age}`
      const isLate = pendingAudit > 0 && oldestPendingAuditMillis > AUDIT_MILLIS_GOOD
      return isLate || pendingAudit > AUDIT_RECORDS_GOOD ? warning(seen) : ok(seen)
    },
  }),
  check({
    name: 'artifacts-present',
    why: 'A Release whose files are gone cannot be served after a restart.',
    repair: 'svc publish',
    reads: ({ artifacts }) => artifacts,
    unread: notRead,
    judge: ({ referenced, missing }) =>
      missing.length === 0
        ? ok(`${referenced} files of Releases are there`)
        : failed(`missing or of another length: ${listed(missing)}`),
  }),
  sample('artifacts-intact', ({ artifactSample }) => artifactSample, {
    why: 'A damaged file of a Release is never executed: the Release cannot be served.',
    repair: 'svc publish',
    more: null,
  }),
  check({
    name: 'artifacts-orphaned',
    why: 'Files that no Release has take space; the server removes them when it starts.',
    repair: 'systemctl restart svc-server',
    reads: ({ artifacts }) => artifacts,
    unread: notRead,
    judge: ({ orphaned }) =>
      orphaned === 0 ? ok('none') : warning(`${orphaned} files belong to no Release`),
  }),
  sample('files-intact', ({ fileSample }) => fileSample, {
    why: 'A download of a damaged file fails, or delivers other bytes.',
    repair: `${VERIFY} --repair`,
    more: VERIFY,
  }),
  check({
    name: 'files-present',
    why: 'A download of a file whose bytes are gone fails.',
    repair: VERIFY,
    reads: ({ storedFiles }) => storedFiles,
    unread: notRead,
    judge: ({ files, isComplete, missing }) => {
      if (missing.length > 0) return failed(`missing or of another length: ${listed(missing)}`)
      return ok(`the bytes of ${isComplete ? 'all' : 'a sample of'} ${files} files are there`)
    },
  }),
  check({
    name: 'files-orphaned',
    why: 'Bytes that no file has take space; the server removes them when it starts.',
    repair: `${VERIFY} --repair`,
    reads: ({ storedFiles }) => storedFiles,
    unread: notRead,
    judge: ({ orphaned }) => {
      if (orphaned === null) return skipped(`too many files to compare here; use ${VERIFY}`)
      return orphaned === 0 ? ok('none') : warning(`${orphaned} contents belong to no file`)
    },
  }),
  check({
    name: 'files-set-aside',
    why: 'Damaged bytes were set aside: their files cannot be read until they are restored.',
    repair: VERIFY,
    reads: ({ quarantined }) => quarantined,
    unread: notRead,
    judge: (names) =>
      names.length === 0 ? ok('none') : warning(`${names.length}: ${listed(names)}`),
  }),
  check({
    name: 'temporary-files',
    why: 'Unfinished writes of a process that was killed take space, and may hold replaced keys.',
    repair: 'rm FILE',
    reads: ({ temporary }) => temporary,
    judge: ({ left }) =>
      left.length === 0
        ? ok('none older than an hour')
        : warning(listed(left), `rm -f ${left.map(shellPath).join(' ')}`),
  }),
  check({
    name: 'document-file-integrity',
    why: 'A damaged document file loses documents, or finds them in some indexes only.',
    repair: 'svc docs backup',
    reads: ({ documentFile }) => documentFile,
    judge: ({ integrity }) => {
      if (integrity === null) {
        return {
          ...skipped('too large, or in use: checked on a stopped root up to 256 MiB'),
          command: 'sqlite3 documents.db "pragma integrity_check"',
        }
      }
      return integrity === 'ok'
        ? ok('documents.db is consistent')
        : failed(`documents.db: ${integrity}`)
    },
  }),
  check({
    name: 'document-file-schema',
    why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
    repair: 'svc-server serve',
    reads: ({ documentFile }) => documentFile,
    unread: notRead,
    judge: ({ schema }) => judgeSchema(schema),
  }),
  check({
    name: 'document-file-mode',
    why:
      'Another program has changed the file: without the write-ahead log commits are slow, and ' +
      'without incremental vacuum the file never shrinks.',
    repair: 'svc-server serve',
    reads: ({ documentFile }) => documentFile,
    unread: notRead,
    judge: ({ journalMode, returnsPages }) => {
      if (journalMode !== 'wal') return failed(`the journal mode is ${journalMode}`)
      return returnsPages
        ? ok('write-ahead log, and free pages return')
        : warning('free pages do not return until the next start')
    },
  }),
  check({
    name: 'document-file-log',
    why: 'A write-ahead log that does not shrink fills the disk and makes the next start slow.',
    repair: 'systemctl restart svc-server',
    reads: ({ documentFile }) => documentFile,
    unread: notRead,
    judge: ({ logBytes }) => {
      const seen = `documents.db-wal has ${mebibytes(logBytes)}`
      return logBytes > WAL_BYTES_GOOD ? warning(seen) : ok(seen)
    },
  }),
  check({
    name: 'documents-sequence',
    why:
      'The documents end before changes that were acknowledged: they were restored from an ' +
      'older copy, or their log was cut. The server does not start.',
    repair: 'svc docs backup',
    reads: ({ documents }) => documents,
    judge: ({ latestSequence, recordedSequence }) => {
      if (recordedSequence === null) return skipped('the recorded sequence cannot be read')
      return latestSequence < recordedSequence
        ? failed(`they end at sequence ${latestSequence}, and ${recordedSequence} was durable`)
        : ok(`sequence ${latestSequence}`)
    },
  }),
  check({
    name: 'indexes-built',
    why: 'A Release that needs the index cannot be served until it is built.',
    repair: 'svc health',
    reads: ({ documents }) => documents,
    unread: notRead,
    judge: ({ indexes, building }) =>
      building.length === 0 ? ok(`${indexes} indexes`) : warning(`not built: ${listed(building)}`),
  }),
  check({
    name: 'indexes-agree',
    why:
      'An index that disagrees with its documents hides some from Queries, or breaks a rule of ' +
      'uniqueness.',
    repair: 'svc docs backup',
    reads: ({ documents }) => documents,
    unread: notRead,
    judge: ({ indexes, sampled, defects }) =>
      defects.length === 0
        ? ok(`${sampled} entries of ${indexes} indexes agree with their documents`)
        : failed(listed(defects.map(({ index, defect }) => `${index}: ${defect}`))),
  }),
  check({
    name: 'log-integrity',
    why: 'A damaged log loses the records of what Functions and operators did.',
    repair: 'svc docs backup',
    reads: ({ log }) => log,
    judge: ({ integrity }) => {
      if (integrity === null) return skipped('too large to be checked here')
      return integrity === 'ok' ? ok('logs.db is consistent') : failed(`logs.db: ${integrity}`)
    },
  }),
  check({
    name: 'log-schema',
    why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
    repair: 'svc-server serve',
    reads: ({ log }) => log,
    unread: notRead,
    judge: ({ schema }) => judgeSchema(schema),
  }),
  check({
    name: 'log-loss',
    why: 'Records were dropped: the disk is too slow for the log, or Functions log too much.',
    repair: 'svc logs --level warn',
    reads: ({ log }) => log,
    unread: notRead,
    judge: ({ lost }) => (lost === 0 ? ok('none') : warning(`${lost} records were lost`)),
  }),
  check({
    name: 'log-archive',
    why:
      'A missing or altered segment ends the chain of the archive: nothing behind it is ' +
      'proved, and records are not pruned.',
    repair: 'svc logs archive-status',
    reads: ({ log }) => log,
    unread: notRead,
    judge: ({ segments, segmentsChecked, damagedSegments }) =>
      damagedSegments.length === 0
        ? ok(`${segmentsChecked} of ${segments} segments were read, and are whole`)
        : failed(`missing or damaged: ${listed(damagedSegments)}`),
  }),
  check({
    name: 'log-archive-age',
    why: 'Records that are in no segment are lost with logs.db, and it grows without a bound.',
    repair: 'svc logs archive-status',
    reads: ({ log }) => log,
    unread: notRead,
    judge: ({ unarchivedMillis, segmentMillisMax }) => {
      if (unarchivedMillis === null) return ok('every record is in a segment')
      const seen = `the oldest record without a segment is ${seconds(unarchivedMillis)} old`
      return unarchivedMillis > segmentMillisMax + SEGMENT_DELAY_MILLIS ? warning(seen) : ok(seen)
    },
  }),
]

function permissions(
  name: string,
  reads: (readings: Readings) => Reading<PermissionsReading>,
  { why }: { readonly why: string },
) {
  return check({
    name,
    why,
    repair: 'chmod go-rwx FILE; chown USER FILE',
    reads,
    judge: ({ directory, defects, looked, isPartial }): Verdict => {
      const [first] = defects
      if (first === undefined) {
        return ok(`${isPartial ? 'the first ' : ''}${looked} entries of ${directory} are private`)
      }
      const words = { owner: 'has another owner', mode: 'is open to others', kind: 'is a link' }
      const path = shellPath(first.path)
      const command = {
        owner: `chown "$(id -u):$(id -g)" ${path}`,
        mode: `chmod go-rwx ${path}`,
        kind: `ls -l ${path}`,
      }
      const others = defects.length > 1 ? `, and ${defects.length - 1} more` : ''
      return failed(`${first.path} ${words[first.defect]}${others}`, command[first.defect])
    },
  })
}

function sample(
  name: string,
  reads: (readings: Readings) => Reading<SampleReading>,
  { why, repair, more }: { why: string; repair: string; more: string | null },
) {
  return check({
    name,
    why,
    repair,
    reads,
    unread: notRead,
    judge: ({ checked, bytes, total, damaged }) => {
      if (damaged.length > 0) return failed(`damaged: ${listed(damaged)}`)
      const all = checked === total || more === null ? '' : `; all of them: ${more}`
      return ok(`${checked} of ${total} were read (${mebibytes(bytes)}), and are whole${all}`)
    },
  })
}
