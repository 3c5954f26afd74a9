/**
 * Goal: each check of the doctor is red for its fault, and none is for a healthy installation.
 * Method: the readings of a healthy installation, of which each row changes one.
 */
import { expect, test } from 'vitest'
import { DoctorReport } from '../../wire/doctor/report.ts'
import { doctorExit, doctorLines } from '../../wire/doctor/report-text.ts'
import { read } from '../../wire/reading/read.ts'
import { SETTINGS_VALID } from './checks/settings-checks.ts'
import { CHECKS, diagnose, diagnoseSettings } from './checks.ts'
import { type PostgresReading, type Reading, type Readings, skip } from './readings.ts'

type Values = { [N in keyof Readings]: Readings[N] extends Reading<infer T> ? T : never }

const POSTGRES: PostgresReading = {
  host: '127.0.0.1',
  port: 5432,
  fsync: 'on',
  fullPageWrites: 'on',
  synchronousCommit: 'on',
  encoding: 'UTF8',
  isStandby: false,
  isReadOnly: false,
  connectionsMax: 97,
  connectionsUsed: 20,
  connectionsOwn: 12,
  connectionsWanted: 19,
  collationRecorded: '2.40',
  collationActual: '2.40',
  transactionAge: 1_000,
  oldestTransactionSeconds: 1,
  preparedTransactions: 0,
  idleSlots: 0,
  isEncrypted: false,
  isLocal: true,
  clockAheadMillis: 20,
  sharedSessions: null,
  databaseName: 'svc',
}
const SCHEMA = { version: 3, known: 3, defect: null }
const PERMISSIONS = { directory: '/root', defects: [], looked: 10, isPartial: false }
const SAMPLE = { checked: 2, bytes: 100, total: 2, isPartial: false, damaged: [] }
const DISK = {
  path: '/srv/root',
  freeBytes: 40 * 2 ** 30,
  totalBytes: 100 * 2 ** 30,
  floorBytes: 0,
  freeInodes: 900_000,
  totalInodes: 1_000_000,
  isWritable: true,
  kind: 'ext4',
  weakOptions: [],
}
const DAY = 86_400_000
const TARGET = {
  location: '/mnt/backups',
  failure: null,
  isWritable: true,
  newest: { sequence: 7, ageMillis: 1_000 },
}
const certificate = (setting: string) => ({
  setting,
  origin: 'https://host.example:8443',
  remainingMillis: 60 * DAY,
  rejection: null,
})

const ORDER_FAILURE = { reason: 'api.example.com: connection refused', ageMillis: 7_200_000 }

const HEALTHY: Values = {
  settings: {
    unread: [],
    deprecated: [],
    exposed: [],
    storeDefect: null,
    jwtDefect: null,
    publicUrl: 'https://manage.example',
    tlsTerminated: true,
    endsTls: false,
    plainOrigins: [],
  },
  stateDirectory: null,
  clock: { driftMillis: 1, elapsedMillis: 900 },
  recordTimes: { aheadMillis: -1_000 },
  disks: [DISK],
  sync: { path: '/srv/root', medianMicros: 900, slowestMicros: 4_000, preloaded: [] },
  process: {
    descriptors: 65_536,
    processes: null,
    descriptorsWanted: 11_024,
    processesWanted: 512,
    runsAsRoot: false,
    exposedExecutable: null,
  },
  memory: { targetBytes: 2 ** 30, machineBytes: 2 ** 33, groupBytes: 2 ** 32, kills: 0 },
  processors: { available: 4, quota: null, applicationProcesses: 2 },
  sandbox: { level: 'full', isRequired: true, detail: '' },
  sqliteVersion: '3.51.3',
  identityVersion: { number: 160_004, text: '16.4' },
  identity: POSTGRES,
  identitySchema: SCHEMA,
  documentVersion: { number: 180_000, text: '18.0' },
  documentDatabase: POSTGRES,
  documentSchema: SCHEMA,
  documentBinding: null,
  identityPepper: { changed: [], checked: 1 },
  subjectPeppers: { changed: [], checked: 2 },
  owners: { owners: 1, isClaimed: true },
  managementListener: { address: '127.0.0.1:3220', state: 'free' },
  applicationListener: { address: '127.0.0.1:3221', state: 'serving' },
  publicUrl: { url: 'https://manage.example', status: 200, isThisProduct: true },
  forwarded: { tlsTerminated: true, hasForwardedFor: true, hops: 1 },
  certificates: [
    'SERVICE_PUBLIC_MANAGEMENT_URL',
    'SERVICE_OIDC_CONFIG_FILE',
    'SERVICE_STORAGE_S3_ENDPOINT',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
  ].map(certificate),
  certificateOrders: { failure: null, remainingMillis: 60 * DAY },
  fileStore: null,
  lock: 'stopped',
  rootPermissions: PERMISSIONS,
  contentPermissions: PERMISSIONS,
  statePermissions: PERMISSIONS,
  control: { integrity: 'ok', foreignKeyBreaks: 0, schema: SCHEMA },
  controlContent: {
    isSameEnvironment: true,
    missingKeys: [],
    keys: 1,
    sealedSecrets: 1,
    unopenedSecrets: [],
    pendingAudit: 1,
    oldestPendingAuditMillis: 10,
    documentsSequence: 7,
  },
  artifacts: { referenced: 2, missing: [], orphaned: 0, isPartial: false },
  artifactSample: SAMPLE,
  fileSample: SAMPLE,
  storedFiles: { files: 2, isComplete: true, missing: [], orphaned: 0, isPartial: false },
  quarantined: [],
  temporary: { left: [] },
  documentFile: {
    integrity: 'ok',
    schema: SCHEMA,
    journalMode: 'wal',
    returnsPages: true,
    logBytes: 2 ** 24,
  },
  documents: {
    latestSequence: 7,
    recordedSequence: 7,
    indexes: 3,
    building: [],
    sampled: 12,
    defects: [],
  },
  log: {
    integrity: 'ok',
    schema: SCHEMA,
    lost: 0,
    segments: 2,
    segmentsChecked: 2,
    bytesChecked: 2 ** 20,
    damagedSegments: [],
    unarchivedMillis: 1_000,
    segmentMillisMax: 3_600_000,
  },
  backups: {
    recipients: 2,
    target: TARGET,
    baseIntervalMillis: DAY,
    rehearses: true,
    rehearsal: { ageMillis: 6 * DAY, failureCode: null },
  },
}

function readingsOf(values: Values): Readings {
  const rows = Object.entries(values).map(([name, value]) => [name, { value }])
  return Object.fromEntries(rows) as Readings
}

type Fault = { [N in keyof Readings]?: Partial<Values[N]> | Values[N] | string }

/** Readings with a fault: fields of a value, a whole value, or the reason of a failed reading. */
function faulty(fault: Fault): Readings {
  const changed = Object.entries(fault).map(([name, change]) => {
    const healthy = HEALTHY[name as keyof Readings]
    const isFields = typeof change === 'object' && change !== null && !Array.isArray(change)
    if (isFields) return [name, { value: { ...(healthy as object), ...change } }]
    return [
      name,
      typeof healthy === 'string' || Array.isArray(change) ? { value: change } : { failed: change },
    ]
  })
  return { ...readingsOf(HEALTHY), ...Object.fromEntries(changed) }
}

const expiring = (setting: string) => ({
  certificates: [{ ...certificate(setting), remainingMillis: 3 * DAY }],
})
const ended = (setting: string) => ({
  certificates: [{ ...certificate(setting), remainingMillis: -1, rejection: 'CERT_HAS_EXPIRED' }],
})
const disk = (change: Partial<typeof DISK> | { weakOptions: string[] }) => ({
  disks: [DISK, { ...DISK, ...change }],
})
const modes = { defects: [{ path: '/srv/a file', defect: 'mode' as const }] }
const owner = { defects: [{ path: '/srv/file', defect: 'owner' as const }] }
const newer = { schema: { version: null, known: 3, defect: 'schema version 4 is unknown' } }
const older = { schema: { version: 2, known: 3, defect: null } }

/** Faults that fail a check, and those that warn. Each check is in one of the tables at least. */
const FAILING: readonly (readonly [check: string, fault: Fault])[] = [
  ['stores-of-root', { settings: { storeDefect: 'its documents are in PostgreSQL' } }],
  ['jwt-provider-keys', { settings: { jwtDefect: 'provider app: a key set' } }],
  ['state-directory', { stateDirectory: 'SERVER_STATE_DIRECTORY_INVALID' }],
  ['listener-management', { managementListener: { state: 'taken' } }],
  ['listener-application', { applicationListener: { state: 'denied' } }],
  ['public-url', { publicUrl: { status: 404, isThisProduct: false } }],
  ['forwarded-headers', { forwarded: { hasForwardedFor: false, hops: 0 } }],
  ['tls-public-url', ended('SERVICE_PUBLIC_MANAGEMENT_URL')],
  ['tls-identity-providers', ended('SERVICE_PRODUCT_AUTH_CONFIG')],
  ['tls-file-store', ended('SERVICE_STORAGE_S3_ENDPOINT')],
  ['tls-traces', ended('OTEL_EXPORTER_OTLP_ENDPOINT')],
  ['tls-orders', { certificateOrders: { failure: ORDER_FAILURE, remainingMillis: null } }],
  ['tls-orders', { certificateOrders: { failure: ORDER_FAILURE, remainingMillis: -1 } }],
  ['tls-orders', { certificateOrders: { remainingMillis: -1 } }],
  ['file-store', { fileStore: 'UNAVAILABLE: the store rejects the key' }],
  ['clock-records', { recordTimes: { aheadMillis: 60_000 } }],
  ['disk-space', disk({ freeBytes: 2 ** 20 })],
  ['disk-space', disk({ freeBytes: 2 ** 31, floorBytes: 2 ** 32 })],
  ['disk-inodes', disk({ freeInodes: 0 })],
  ['disk-writable', disk({ isWritable: false })],
  ['disk-kind', disk({ kind: 'tmpfs' })],
  ['disk-kind', disk({ kind: 'nfs4' })],
  ['disk-mount-options', disk({ weakOptions: ['barrier=0'] })],
  ['fsync-latency', { sync: { medianMicros: 3 } }],
  ['fsync-preload', { sync: { preloaded: ['/usr/lib/libeatmydata.so'] } }],
  ['descriptors', { process: { descriptors: 100 } }],
  ['executable', { process: { exposedExecutable: '/usr/local/bin/svc-server' } }],
  ['memory-limit', { memory: { groupBytes: 2 ** 29 } }],
  ['sandbox', { sandbox: { level: 'partial', detail: 'missing seccomp' } }],
  ['sqlite-version', { sqliteVersion: '3.51.2' }],
  ['sqlite-version', { sqliteVersion: '3.43.2' }],
  ...(['identity', 'documents'] as const).flatMap((label): (readonly [string, Fault])[] => {
    const [version, state, schema] =
      label === 'identity'
        ? (['identityVersion', 'identity', 'identitySchema'] as const)
        : (['documentVersion', 'documentDatabase', 'documentSchema'] as const)
    const of = (topic: string, change: Partial<PostgresReading>): readonly [string, Fault] => [
      `${label}-database-${topic}`,
      { [state]: change },
    ]
    return [
      [`${label}-database-version`, { [version]: { number: 150_008, text: '15.8' } }],
      [`${label}-database-version`, { [version]: 'connection: refused' }],
      of('durability', { fsync: 'off' }),
      of('durability', { fullPageWrites: 'off' }),
      of('durability', { synchronousCommit: 'off' }),
      of('encoding', { encoding: 'LATIN1' }),
      of('writable', { isStandby: true }),
      of('connections', { connectionsUsed: 97 }),
      of('sessions', { sharedSessions: 'a pooler' }),
      [`${label}-database-schema`, { [schema]: newer.schema }],
      of('transaction-age', { transactionAge: 2_100_000_000 }),
      of('clock', { clockAheadMillis: -120_000 }),
    ]
  }),
  ['documents-database-binding', { documentBinding: 'of another Environment' }],
  ['identity-pepper', { identityPepper: { changed: ['identity'] } }],
  ['subject-peppers', { subjectPeppers: { changed: ['oidc-subject:main'] } }],
  ['root-lock', { lock: undefined as never }],
  ['root-permissions', { rootPermissions: modes }],
  ['root-content-permissions', { contentPermissions: owner }],
  ['state-permissions', { statePermissions: modes }],
  ['control-integrity', { control: { integrity: 'it fails' } }],
  ['control-integrity', { control: { foreignKeyBreaks: 1 } }],
  ['control-schema', { control: newer }],
  ['control-environment', { controlContent: { isSameEnvironment: false } }],
  ['keyring', { controlContent: { missingKeys: ['k0'] } }],
  ['sealed-secrets', { controlContent: { unopenedSecrets: ['STRIPE_KEY'] } }],
  ['artifacts-present', { artifacts: { missing: ['sha256:00'] } }],
  ['artifacts-intact', { artifactSample: { damaged: ['00'] } }],
  ['files-intact', { fileSample: { damaged: ['00'] } }],
  ['files-present', { storedFiles: { missing: ['00'] } }],
  ['document-file-integrity', { documentFile: { integrity: 'it fails' } }],
  ['document-file-schema', { documentFile: newer }],
  ['document-file-mode', { documentFile: { journalMode: 'delete' } }],
  ['documents-sequence', { documents: { latestSequence: 6 } }],
  ['indexes-agree', { documents: { defects: [{ index: 'tasks(list)', defect: 'no entry' }] } }],
  ['log-integrity', { log: { integrity: 'it fails' } }],
  ['log-schema', { log: newer }],
  ['backup-target', { backups: { target: { ...TARGET, failure: 'EACCES' } } }],
  ['backup-age', { backups: { target: { ...TARGET, newest: null } } }],
  [
    'backup-age',
    { backups: { target: { ...TARGET, newest: { sequence: 7, ageMillis: 1.2 * DAY } } } },
  ],
  ['backup-rehearsal', { backups: { rehearsal: { ageMillis: 1, failureCode: 'BACKUP_CORRUPT' } } }],
  ['log-archive', { log: { damagedSegments: ['0000000001-00.jsonl.zst'] } }],
]

const WARNING: readonly (readonly [check: string, fault: Fault])[] = [
  ['settings-known', { settings: { unread: ['SERVICE_MISSPELLED'] } }],
  ['settings-deprecated', { settings: { deprecated: ['DATABASE_URL'] } }],
  ['secret-files', { settings: { exposed: ['SERVICE_PLATFORM_IDENTITY_PEPPER_FILE'] } }],
  ['management-proxy', { settings: { tlsTerminated: false } }],
  ['management-url', { settings: { publicUrl: null } }],
  ['allowed-origins', { settings: { plainOrigins: ['http://app.example'] } }],
  ['forwarded-headers', { forwarded: { hops: 2 } }],
  ['forwarded-headers', { forwarded: { tlsTerminated: false } }],
  ['tls-public-url', expiring('SERVICE_S3_HOST')],
  ['tls-orders', { certificateOrders: { failure: ORDER_FAILURE } }],
  ['tls-orders', { certificateOrders: { remainingMillis: null } }],
  ['clock-steps', { clock: { driftMillis: -5_000 } }],
  ['disk-space', disk({ freeBytes: 2 ** 29 })],
  ['disk-inodes', disk({ freeInodes: 10_000 })],
  ['disk-kind', disk({ kind: 'overlayfs' })],
  ['fsync-latency', { sync: { medianMicros: 200_000 } }],
  ['descriptors', { process: { descriptors: 1_024 } }],
  ['processes', { process: { processes: 64 } }],
  ['user', { process: { runsAsRoot: true } }],
  ['memory-limit', { memory: { groupBytes: 1.5 * 2 ** 30 } }],
  ['memory-target', { memory: { machineBytes: 2 ** 30 } }],
  ['memory-kills', { memory: { kills: 1 } }],
  ['processors', { processors: { applicationProcesses: 8 } }],
  ['processors', { processors: { quota: 0.5 } }],
  ['sandbox', { sandbox: { level: 'none', isRequired: false } }],
  ...(['identity', 'documents'] as const).flatMap((label): (readonly [string, Fault])[] => {
    const [state, schema] =
      label === 'identity'
        ? (['identity', 'identitySchema'] as const)
        : (['documentDatabase', 'documentSchema'] as const)
    const of = (topic: string, change: Partial<PostgresReading>): readonly [string, Fault] => [
      `${label}-database-${topic}`,
      { [state]: change },
    ]
    return [
      of('writable', { isReadOnly: true }),
      of('connections', { connectionsUsed: 95, connectionsOwn: 0 }),
      of('collation', { collationActual: '2.41' }),
      [`${label}-database-schema`, { [schema]: older.schema }],
      of('transaction-age', { transactionAge: 1_200_000_000 }),
      of('old-transactions', { oldestTransactionSeconds: 7_200 }),
      of('old-transactions', { preparedTransactions: 1 }),
      of('old-transactions', { idleSlots: 1 }),
      of('encryption', { isLocal: false }),
      of('clock', { clockAheadMillis: 5_000 }),
    ]
  }),
  ['backup-recipients', { backups: { recipients: 0, target: null } }],
  ['backup-recipients', { backups: { target: null } }],
  ['backup-rehearsal', { backups: { rehearsal: null } }],
  ['backup-rehearsal', { backups: { rehearsal: { ageMillis: 16 * DAY, failureCode: null } } }],
  ['owner', { owners: { owners: 0 } }],
  ['owner', { owners: { owners: 0, isClaimed: false } }],
  ['control-schema', { control: older }],
  ['audit-delivery', { controlContent: { oldestPendingAuditMillis: 7_200_000 } }],
  ['artifacts-orphaned', { artifacts: { orphaned: 1 } }],
  ['files-orphaned', { storedFiles: { orphaned: 1 } }],
  ['files-set-aside', { quarantined: ['00'] }],
  ['temporary-files', { temporary: { left: ['/srv/root/.keyring.json.0a.tmp'] } }],
  ['document-file-mode', { documentFile: { returnsPages: false } }],
  ['document-file-log', { documentFile: { logBytes: 2 ** 30 } }],
  ['indexes-built', { documents: { building: ['tasks(list)'] } }],
  ['log-loss', { log: { lost: 1 } }],
  ['log-archive-age', { log: { unarchivedMillis: 5_000_000 } }],
]

const nameOf = (check: string, fault: Fault): string => `${check} ${JSON.stringify(fault)}`

test('a healthy installation has no failure and no warning', () => {
  const report = diagnose(readingsOf(HEALTHY))
  expect(report.checks.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(report.checks.every(({ command }) => command === null)).toBe(true)
  expect(doctorExit(report)).toBe(0)
})

test.each(FAILING.map(([check, fault]) => ({ title: nameOf(check, fault), check, fault })))(
  'a fault fails its check: $title',
  ({ check, fault }) => expectRed(check, fault, 'failed'),
)

test.each(WARNING.map(([check, fault]) => ({ title: nameOf(check, fault), check, fault })))(
  'a fault warns: $title',
  ({ check, fault }) => expectRed(check, fault, 'warning'),
)

function expectRed(name: string, fault: Fault, status: 'failed' | 'warning'): void {
  const isLock = name === 'root-lock'
  const readings = isLock
    ? { ...readingsOf(HEALTHY), lock: { failed: 'lock.db has another owner' } }
    : faulty(fault)
  const report = diagnose(readings)
  const found = report.checks.find((check) => check.name === name)!
  expect(found).toMatchObject({ status, command: expect.stringMatching(/./) })
  expect(found.seen).not.toBe('')
  // A fault is reported once.
  const others = report.checks.filter((check) => check.name !== name)
  expect(others.filter((check) => check.status === 'failed')).toEqual([])
  expect(doctorExit(report)).toBe(status === 'failed' ? 4 : 0)
  read(DoctorReport, report, 'PLATFORM_INTERNAL')
}

test('each check has a fault, a name of its own and a reason', () => {
  const names = CHECKS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThanOrEqual(40)
  // The test of settings that cannot be read has the first one.
  const red = new Set([SETTINGS_VALID, ...[...FAILING, ...WARNING].map(([name]) => name)])
  expect(names.filter((name) => !red.has(name))).toEqual([])
  for (const { why, repair } of CHECKS) expect(`${why}${repair}`).toMatch(/^[A-Z].*\S$/)
})

test('settings that cannot be read are one failure, and all other checks are skipped', () => {
  const { checks } = diagnoseSettings('SERVER_CONFIGURATION_INVALID: NAME: a rule')
  const [failure, ...others] = checks.toSorted((a, b) => a.status.localeCompare(b.status))
  expect(failure).toMatchObject({ name: SETTINGS_VALID, status: 'failed' })
  expect(failure!.seen).toContain('a rule')
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set(['skipped']))
  expect(checks.map(({ name }) => name)).toEqual(CHECKS.map(({ name }) => name))
})

test('what cannot be read is skipped where another check reports it', () => {
  const skipped = Object.fromEntries(
    Object.keys(HEALTHY).map((name) => [name, { skipped: 'not here' }]),
  ) as unknown as Readings
  const { checks } = diagnose(skipped)
  const [valid, ...others] = checks
  expect(valid).toMatchObject({ name: SETTINGS_VALID, status: 'ok' })
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set(['skipped']))
  expect(others.every(({ seen }) => seen === 'not here')).toBe(true)
})

test('a reading that failed may have its own command', () => {
  const identityVersion = { failed: 'host: nothing listens', command: 'pg_isready -h a -p 1' }
  const { checks } = diagnose({ ...readingsOf(HEALTHY), identityVersion })
  expect(checks.find(({ status }) => status === 'failed')).toMatchObject({
    name: 'identity-database-version',
    command: 'pg_isready -h a -p 1',
  })
})

test('a schema of a newer version that lets this one use it is no defect', () => {
  const schema = { version: 4, known: 3, defect: null }
  const { control } = HEALTHY
  const { checks } = diagnose(faulty({ control: { ...control, schema } }))
  expect(checks.find(({ name }) => name === 'control-schema')).toMatchObject({
    status: 'ok',
    seen: 'schema version 4 of a newer svc-server, which lets this one use it',
  })
})

test('an origin that cannot be reached is skipped', () => {
  const [first] = HEALTHY.certificates
  const report = diagnose(faulty({ certificates: [{ ...first!, remainingMillis: null }] }))
  expect(report.checks.find(({ name }) => name === 'tls-public-url')).toMatchObject({
    status: 'skipped',
  })
})

test('the text names skipped checks by their reason, with the command that makes them', () => {
  const report = diagnose({
    ...readingsOf(HEALTHY),
    log: skip('a server has the root', 'svc doctor'),
    sandbox: skip('no root'),
  })
  const lines = doctorLines(report, { styled: (_, text) => text, printable: (text) => text })
  const at = lines.indexOf('skipped  5 checks: a server has the root: svc doctor')
  expect(lines[at + 1]).toBe(
    '         log-integrity, log-schema, log-loss, log-archive, log-archive-age',
  )
  expect(lines).toContain('skipped  1 check: no root')
  expect(lines.filter((line) => line.startsWith('skipped'))).toHaveLength(2)
})

test('the text has failures last, with the reason and the repair, and escapes what it saw', () => {
  const report = diagnose(faulty({ artifactSample: { damaged: ['\u001b[2J'] } }))
  const styled = (status: string, text: string): string => `<${status}>${text}`
  const lines = doctorLines(report, { styled, printable: (text) => JSON.stringify(text) })
  const at = lines.findIndex((line) => line.startsWith('<failed>'))
  expect(lines.slice(at).some((line) => line.startsWith('<ok>'))).toBe(false)
  expect(lines[at]).toContain('\\u001b[2J')
  expect(lines[at + 1]).toContain('A damaged file of a Release')
  expect(lines[at + 2]).toContain('Repair: "svc publish"')
  expect(lines.at(-1)).toContain(`${CHECKS.length} checks`)
})
