/** Checks of the Product root: owner and modes, control database, artifacts, files, log. */
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import {
  check,
  counted,
  failed,
  listed,
  mebibytes,
  notRead,
  ok,
  seconds,
  skipped,
  type Verdict,
  warning,
} from '../check.ts'
import type { PermissionsReading, Reading, Readings, SampleReading } from '../readings.ts'
import { evaluateSchema } from './postgres-checks.ts'

const MIB = 1024 * 1024
/** The log is cut to 64 MiB; twice as much means that a reader keeps checkpoints from ending. */
const WAL_BYTES_GOOD = 128 * MIB
const AUDIT_MILLIS_GOOD = 3_600_000
const AUDIT_RECORDS_GOOD = 10_000
/** A segment is closed within ten seconds of its age. */
const SEGMENT_DELAY_MILLIS = 600_000
const VERIFY = 'svc-server verify-storage'
/** Keys are derived for an Environment: those of another one fit nothing. */
const OTHER_ENVIRONMENT = 'control.db belongs to another Environment than service.json'

export const ROOT_CHECKS = [
  check({
    name: 'root-lock',
    why:
      'One process owns a Product root; what needs the lock is not checked while a server ' +
      'holds it.',
    repair: 'ls -l "$SERVICE_PRODUCT_ROOT/lock.db"',
    reads: ({ lock }) => lock,
    evaluate: (state) => {
      if (state === 'running') {
        return ok('a server runs on the root: svc doctor makes the skipped checks')
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
    evaluate: ({ integrity, foreignKeyBreaks }) => {
      const verdict = evaluateIntegrity('control.db', integrity)
      return foreignKeyBreaks > 0
        ? failed(`control.db: ${counted(foreignKeyBreaks, 'row')} refer to rows that are missing`)
        : verdict
    },
  }),
  check({
    name: 'control-schema',
    why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
    repair: 'svc-server serve',
    reads: ({ control }) => control,
    unread: notRead,
    evaluate: ({ schema }) => evaluateSchema(schema),
  }),
  check({
    name: 'control-environment',
    why:
      'The server does not start if service.json and control.db belong to different ' +
      'Environments.',
    repair: 'svc docs backup',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    evaluate: ({ isSameEnvironment }) =>
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
    evaluate: ({ isSameEnvironment, missingKeys, keys }) => {
      if (!isSameEnvironment) return skipped(OTHER_ENVIRONMENT)
      return missingKeys.length === 0
        ? ok(`${counted(keys, 'key')}, and every one that control.db was written with`)
        : failed(`keyring.json lacks ${listed(missingKeys)}`)
    },
  }),
  check({
    name: 'sealed-secrets',
    why: 'An Action that needs a secret which no key opens fails.',
    repair: 'svc config set NAME --secret',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    evaluate: ({ isSameEnvironment, sealedSecrets, unopenedSecrets }) => {
      if (!isSameEnvironment) return skipped(OTHER_ENVIRONMENT)
      return unopenedSecrets.length === 0
        ? ok(`${counted(sealedSecrets, 'secret')} of the configuration can be opened`)
        : failed(`cannot be opened: ${listed(unopenedSecrets)}`)
    },
  }),
  check({
    name: 'audit-delivery',
    why: 'Changes of the Environment are missing from the security audit until they are delivered.',
    repair: 'svc health',
    reads: ({ controlContent }) => controlContent,
    unread: notRead,
    evaluate: ({ pendingAudit, oldestPendingAuditMillis }) => {
      if (pendingAudit === 0) return ok('no record waits')
      const age = seconds(oldestPendingAuditMillis)
      const seen = `${counted(pendingAudit, 'record')} wait, the oldest for ${age}`
      const isLate = oldestPendingAuditMillis > AUDIT_MILLIS_GOOD
      return isLate || pendingAudit > AUDIT_RECORDS_GOOD ? warning(seen) : ok(seen)
    },
  }),
  check({
    name: 'artifacts-present',
    why: 'A Release whose files are gone cannot be served after a restart.',
    repair: 'svc publish',
    reads: ({ artifacts }) => artifacts,
    unread: notRead,
    evaluate: ({ referenced, missing }) =>
      missing.length === 0
        ? ok(`${counted(referenced, 'file')} of Releases are there`)
        : failed(`missing or of another length: ${listed(missing)}`),
  }),
  sample('artifacts-intact', ({ artifactSample }) => artifactSample, {
    why: 'A damaged file of a Release is never executed: the Release cannot be served.',
    repair: 'svc publish',
    more: null,
  }),
  check({
    name: 'artifacts-orphaned',
    why: 'Files that no Release uses take space; the server removes them when it starts.',
    repair: 'systemctl restart svc-server',
    reads: ({ artifacts }) => artifacts,
    unread: notRead,
    evaluate: ({ orphaned, isPartial }) => evaluateOrphans(orphaned, isPartial, 'Release'),
  }),
  sample('files-intact', ({ fileSample }) => fileSample, {
    why: 'A download of a damaged file fails, or delivers other bytes.',
    repair: 'svc docs backup',
    more: VERIFY,
  }),
  check({
    name: 'files-present',
    why: 'A download of a file whose bytes are gone fails.',
    repair: 'svc docs backup',
    reads: ({ storedFiles }) => storedFiles,
    unread: notRead,
    evaluate: ({ files, isComplete, missing }) => {
      if (missing.length > 0) return failed(`missing or of another length: ${listed(missing)}`)
      if (files === 0) return ok('there are no stored files')
      const which = isComplete ? '' : 'the first '
      return ok(`the bytes of ${which}${counted(files, 'file')} are there`)
    },
  }),
  check({
    name: 'files-orphaned',
    why: 'Contents that no file uses take space; the server removes them when it starts.',
    repair: `${VERIFY} --repair`,
    reads: ({ storedFiles }) => storedFiles,
    unread: notRead,
    evaluate: ({ orphaned, isPartial }) =>
      orphaned === null
        ? skipped('there are too many files to compare all', VERIFY)
        : evaluateOrphans(orphaned, isPartial, 'file'),
  }),
  check({
    name: 'files-set-aside',
    why: 'Damaged bytes were set aside: their files cannot be read until they are restored.',
    repair: 'svc docs backup',
    reads: ({ quarantined }) => quarantined,
    unread: notRead,
    evaluate: (names) =>
      names.length === 0
        ? ok('none was set aside')
        : warning(`${counted(names.length, 'content')}: ${listed(names)}`),
  }),
  check({
    name: 'temporary-files',
    why: 'Unfinished writes of a process that was killed take space, and may hold replaced keys.',
    repair: 'rm -f FILE',
    reads: ({ temporary }) => temporary,
    evaluate: ({ left }) =>
      left.length === 0
        ? ok('none older than an hour')
        : warning(listed(left), `rm -f ${left.map(shellQuoted).join(' ')}`),
  }),
  check({
    name: 'document-file-integrity',
    why: 'A damaged document file loses documents, or finds them in some indexes only.',
    repair: 'svc docs backup',
    reads: ({ documentFile }) => documentFile,
    evaluate: ({ integrity }) => {
      return evaluateIntegrity('documents.db', integrity)
    },
  }),
  check({
    name: 'document-file-schema',
    why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
    repair: 'svc-server serve',
    reads: ({ documentFile }) => documentFile,
    unread: notRead,
    evaluate: ({ schema }) => evaluateSchema(schema),
  }),
  check({
    name: 'document-file-mode',
    why:
      'Another program has changed the file: without the write-ahead log commits are slow, and ' +
      'without incremental vacuum the file never shrinks.',
    repair: 'svc-server serve',
    reads: ({ documentFile }) => documentFile,
    unread: notRead,
    evaluate: ({ journalMode, returnsPages }) => {
      if (journalMode !== 'wal') return failed(`the journal mode is ${journalMode}`)
      return returnsPages
        ? ok('it has a write-ahead log and incremental vacuum')
        : warning('incremental vacuum is off until the next start')
    },
  }),
  check({
    name: 'document-file-log',
    why: 'A write-ahead log that does not shrink fills the disk and makes the next start slow.',
    repair: 'systemctl restart svc-server',
    reads: ({ documentFile }) => documentFile,
    unread: notRead,
    evaluate: ({ logBytes }) => {
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
    evaluate: ({ latestSequence, recordedSequence }) => {
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
    evaluate: ({ indexes, building }) =>
      building.length === 0
        ? ok(`${counted(indexes, 'index', 'indexes')}, all built`)
        : warning(`not built: ${listed(building)}`),
  }),
  check({
    name: 'indexes-agree',
    why:
      'An index that disagrees with its documents hides some from Queries, or breaks a rule of ' +
      'uniqueness.',
    repair: 'svc docs backup',
    reads: ({ documents }) => documents,
    unread: notRead,
    evaluate: ({ indexes, sampled, defects }) =>
      defects.length === 0
        ? ok(
            `${counted(sampled, 'entry', 'entries')} of ` +
              `${counted(indexes, 'index', 'indexes')} agree with their documents`,
          )
        : failed(listed(defects.map(({ index, defect }) => `${index}: ${defect}`))),
  }),
  check({
    name: 'log-integrity',
    why: 'A damaged log loses the records of what Functions and operators did.',
    repair: 'svc docs backup',
    reads: ({ log }) => log,
    evaluate: ({ integrity }) => {
      return evaluateIntegrity('logs.db', integrity)
    },
  }),
  check({
    name: 'log-schema',
    why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
    repair: 'svc-server serve',
    reads: ({ log }) => log,
    unread: notRead,
    evaluate: ({ schema }) => evaluateSchema(schema),
  }),
  check({
    name: 'log-loss',
    why: 'Records were dropped: the disk is too slow for the log, or Functions log too much.',
    repair: 'svc logs --level warn',
    reads: ({ log }) => log,
    unread: notRead,
    evaluate: ({ lost }) =>
      lost === 0 ? ok('no record was lost') : warning(`${counted(lost, 'record')} were lost`),
  }),
  check({
    name: 'log-archive',
    why:
      'A missing or altered segment ends the chain of the archive: nothing behind it is ' +
      'proved, and records are not pruned.',
    repair: 'svc logs archive-status',
    reads: ({ log }) => log,
    unread: notRead,
    evaluate: ({ segments, segmentsChecked, bytesChecked, damagedSegments }) => {
      if (damagedSegments.length > 0)
        return failed(`missing or damaged: ${listed(damagedSegments)}`)
      if (segments === 0) return ok('there is no segment yet')
      return ok(
        `${counted(segments, 'segment')}; the newest ${segmentsChecked} ` +
          `(${mebibytes(bytesChecked)}) were read, and are whole`,
      )
    },
  }),
  check({
    name: 'log-archive-age',
    why: 'Records that are in no segment are lost with logs.db, and it grows without a bound.',
    repair: 'svc logs archive-status',
    reads: ({ log }) => log,
    unread: notRead,
    evaluate: ({ unarchivedMillis, segmentMillisMax }) => {
      if (unarchivedMillis === null) return ok('every record is in a segment')
      const seen = `the oldest record without a segment is ${seconds(unarchivedMillis)} old`
      return unarchivedMillis > segmentMillisMax + SEGMENT_DELAY_MILLIS ? warning(seen) : ok(seen)
    },
  }),
]

/** Three files have this check; the doctor reads no file whole that would take it minutes. */
function evaluateIntegrity(file: string, integrity: string | null): Verdict {
  if (integrity === null) {
    const seen = `${file} is too large to be read whole here; stop the server to check it yourself`
    return skipped(seen, `sqlite3 ${file} 'pragma integrity_check'`)
  }
  return integrity === 'ok' ? ok(`${file} is consistent`) : failed(`${file}: ${integrity}`)
}

function evaluateOrphans(orphaned: number, isPartial: boolean, user: 'Release' | 'file'): Verdict {
  const count = `${isPartial ? 'at least ' : ''}${counted(orphaned, 'content')}`
  if (orphaned > 0) return warning(`${count} older than an hour, used by no ${user}`)
  return ok(`${isPartial ? 'each of the first ones' : 'each content'} is used, or new`)
}

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
    evaluate: ({ directory, defects, looked, isPartial }): Verdict => {
      const [first] = defects
      if (first === undefined) {
        const entries = counted(looked, 'entry', 'entries')
        return ok(`${isPartial ? 'the first ' : ''}${entries} of ${directory} are private`)
      }
      const words = { owner: 'has another owner', mode: 'is open to others', kind: 'is a link' }
      const path = shellQuoted(first.path)
      const command = {
        owner: `chown "$(id -u):$(id -g)" ${path}`,
        mode: `chmod go-rwx ${path}`,
        kind: `ls -l ${path}`,
      }
      const others = defects.length > 1 ? `, and ${defects.length - 1} more such entries` : ''
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
    evaluate: ({ checked, bytes, total, isPartial, damaged }) => {
      if (damaged.length > 0) return failed(`damaged: ${listed(damaged)}`)
      if (total === 0) return ok('there are no such files yet')
      const all = checked === total || more === null ? '' : `; ${more} reads all`
      const of = `${isPartial ? 'at least ' : ''}${counted(total, 'file')}`
      return ok(`${checked} of ${of} were read (${mebibytes(bytes)}), and are whole${all}`)
    },
  })
}
