import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { IDENTITY_TEMPLATE } from '../../../testing/identity.ts'
import {
  BackupRoutes,
  openTestBackups,
  verifyArchive,
} from '../../../testing/management/backups.ts'
import { functionManifest } from '../../../testing/products.ts'
import { Database } from '../../database/database.ts'
import { findBackup, insertBackup, markBackupFailed } from '../../storage/control/backups.ts'
import type { HistoryId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import {
  BACKUPS_MAX,
  type BackupCreated,
  type BackupField,
  type BackupList,
} from '../../wire/backups/backups.ts'
import { formatUpgrade } from '../../wire/files/upgrades.ts'
import { BACKUP_DOWNLOADS_MAX } from './backups.ts'

type Backups = ReturnType<typeof openTestBackups>

let gateway: TestGateway
let identityDatabase: TestDatabase
let identity: Database
let backups: Backups
let routes: BackupRoutes
let secret: string
let recipient: string

beforeEach(async () => {
  gateway = await openTestGateway({
    functions: [functionManifest('echo.query')],
    tables: [],
    handlers: {},
  })
  identityDatabase = await freshDatabase(IDENTITY_TEMPLATE)
  identity = new Database({ url: new Secret(identityDatabase.url) })
  secret = await generateX25519Identity()
  recipient = await identityToRecipient(secret)
  open({})
})
afterEach(async () => {
  await backups.close()
  await gateway.close()
  await identity.close()
  await identityDatabase.drop()
})

function open(settings: { recipients?: readonly string[]; freeFloorBytes?: number }): void {
  backups = openTestBackups(gateway, { identity, ...settings })
  routes = new BackupRoutes(gateway, backups)
}

const newId = () => gateway.harness.system.ids.make('opn')
const at = () => ({ changedAtMicros: String(gateway.harness.system.nowMicros()) })
const directory = () => join(gateway.harness.root.path, 'backups')

function create(recipients: readonly string[] | null = [recipient], operationId = newId()) {
  const body = { ...at(), ...(recipients !== null && { recipients }) }
  return routes.send('POST', '', { body, operationId })
}

/** Makes a backup and returns it once it has ended. */
async function made(): Promise<BackupField> {
  const response = await create()
  expect(response.status).toBe(201)
  const { backupId } = (await response.json()) as BackupCreated
  await backups.whenIdle()
  return (await (await routes.send('GET', `/${backupId}`)).json()) as BackupField
}

async function rejection(response: Response): Promise<string> {
  const { error } = (await response.json()) as {
    error: { code: string; violations?: readonly { path: string; rule: string }[] }
  }
  return [
    `${response.status} ${error.code}`,
    ...(error.violations ?? []).map(({ path, rule }) => `${path}: ${rule}`),
  ].join(' | ')
}

async function listed(): Promise<readonly BackupField[]> {
  return ((await (await routes.send('GET')).json()) as BackupList).items
}

test('the archive of a backup is opened by its recipient and has what the server has', {
  tags: ['slow'],
}, async () => {
  const backup = await made()
  expect(backup).toMatchObject({ state: 'complete', reason: 'requested', location: 'root' })
  expect(backup).toMatchObject({
    damaged: '0',
    failureCode: null,
    historyId: expect.stringMatching(/^hst_/),
  })
  const response = await routes.send('GET', `/${backup.backupId}/content`)
  expect(response.headers.get('content-type')).toBe('application/x-tar')
  expect(response.headers.get('content-disposition')).toContain(`${backup.backupId}.tar`)
  const archive = await response.bytes()
  const { counts, sequence } = await verifyArchive(archive, secret)
  expect(String(sequence)).toBe(backup.sequence)
  expect(counts).toMatchObject({ environment: 1 })
  expect(counts.control).toBeGreaterThan(0)
  expect(counts.artifact).toBeGreaterThan(0)
  const stranger = await generateX25519Identity()
  await expect(verifyArchive(archive, stranger)).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
  expect(routes.downloads.open).toBe(0)
  expect(gateway.metrics.counters.backupsCompleted.value).toBe(1)
  expect(gateway.metrics.counters.backupBytes.value).toBe(Number(backup.bytes))
})

test('the audit has who asked for a backup and who read it', { tags: ['slow'] }, async () => {
  const { backupId } = await made()
  await (await routes.send('GET', `/${backupId}/content`)).bytes()
  await gateway.harness.product.audit.whenIdle()
  const { audited, actor } = gateway.harness
  const records = audited.filter(({ subject }) => subject === backupId)
  expect(records.map(({ operation }) => operation)).toEqual([
    'product.backup.create',
    'product.backup.read',
  ])
  for (const record of records) expect(record.actor).toBe(actor.operatorId)
})

test('a repeated Operation ID returns the first backup and makes no other', {
  tags: ['slow'],
}, async () => {
  const operationId = newId()
  const first = (await (await create([recipient], operationId)).json()) as BackupCreated
  await backups.whenIdle()
  const repeated = await create([recipient], operationId)
  expect(repeated.status).toBe(200)
  expect(await repeated.json()).toMatchObject({
    backupId: first.backupId,
    operation: { replayed: true },
  })
  expect(backups.isBusy).toBe(false)
  expect(await listed()).toHaveLength(1)
})

test('one backup is made at a time', async () => {
  expect((await create()).status).toBe(201)
  expect(await rejection(await create())).toBe(
    '409 PRODUCT_STATE_CONFLICT | backup: one at a time: another backup is being made',
  )
})

test('a request names the recipients where the settings name none', async () => {
  const invalid = '400 PRODUCT_INVALID'
  const none = `${invalid} | recipients: at least one: the settings of the server name none`
  expect(await rejection(await create(null))).toBe(none)
  expect(await rejection(await create([]))).toBe(none)
  const mistyped = `${recipient.slice(0, -1)}${recipient.endsWith('q') ? 'p' : 'q'}`
  expect(await rejection(await create([recipient, mistyped]))).toBe(
    `${invalid} | recipients[1]: a recipient of age without a typing error`,
  )
  expect(await rejection(await create([recipient, recipient]))).toBe(
    `${invalid} | recipients: each once`,
  )
  expect(await listed()).toEqual([])
})

test('a request cannot replace the recipients of the settings', { tags: ['slow'] }, async () => {
  open({ recipients: [recipient] })
  const stranger = await identityToRecipient(await generateX25519Identity())
  expect(await rejection(await create([stranger]))).toBe(
    '400 PRODUCT_INVALID | recipients: left out: the settings of the server name the recipients',
  )
  const { backupId } = (await (await create(null)).json()) as BackupCreated
  await backups.whenIdle()
  const archive = await (await routes.send('GET', `/${backupId}/content`)).bytes()
  expect((await verifyArchive(archive, secret)).counts.environment).toBe(1)
})

test('a Product root keeps the two newest backups', { tags: ['slow'] }, async () => {
  const first = await made()
  const second = await made()
  const third = await made()
  expect((await listed()).map(({ backupId }) => backupId)).toEqual([
    third.backupId,
    second.backupId,
  ])
  expect(readdirSync(directory()).toSorted()).toEqual([second.backupId, third.backupId].toSorted())
  expect(await rejection(await routes.send('GET', `/${first.backupId}`))).toMatch(
    /^404 PRODUCT_NOT_FOUND/,
  )
})

test('a full list forgets the oldest, and not the backup before the last upgrade', {
  tags: ['slow'],
}, async () => {
  const first = await made()
  const { root, system } = gateway.harness
  const historyId = first.historyId as HistoryId
  const versions = { identity: 1, control: 1, documents: 1, logs: 1 }
  const states = { found: versions, target: versions, sequence: 0, atMicros: '1' }
  const named = formatUpgrade({ backupId: first.backupId, historyId, ...states })
  writeFileSync(join(root.path, 'upgrade.json'), named, { mode: 0o600 })
  root.control.transaction((tx) => {
    for (let i = 1; i < BACKUPS_MAX; i++) {
      const backupId = system.ids.make('bkp')
      const row = { backupId, historyId, createdAtMicros: system.nowMicros() }
      insertBackup(tx, { ...row, reason: 'requested', location: 'root' })
      markBackupFailed(tx, { backupId, code: 'UNAVAILABLE' }, system.nowMicros())
    }
  })
  const [newest] = [await made(), await made()].reverse()
  const items = await listed()
  expect(items).toHaveLength(BACKUPS_MAX)
  expect(items.map(({ backupId }) => backupId)).toContain(first.backupId)
  expect(items[0]!.backupId).toBe(newest!.backupId)
  expect((await routes.send('GET', `/${first.backupId}/content`)).status).toBe(200)
})

test('a backup that is being read is kept', { tags: ['slow'] }, async () => {
  const { backupId } = await made()
  await made()
  const { control } = gateway.harness.root
  const archive = backups.content(control.read((reader) => findBackup(reader, backupId))!)
  await archive.next()
  await made()
  expect(readdirSync(directory())).toContain(backupId)
  await archive.return(undefined)
  await made()
  expect(readdirSync(directory())).not.toContain(backupId)
})

test('a backup fails where the disk has too little space, and leaves no file', {
  tags: ['slow'],
}, async () => {
  open({ freeFloorBytes: 2 ** 60 })
  const backup = await made()
  expect(backup).toMatchObject({ state: 'failed', failureCode: 'UNAVAILABLE', sequence: null })
  expect(readdirSync(directory())).toEqual([])
  expect(gateway.harness.log.text()).toContain('backup.failed')
  expect(gateway.metrics.counters.backupFailures.value).toBe(1)
  expect(await rejection(await routes.send('GET', `/${backup.backupId}/content`))).toBe(
    '409 PRODUCT_STATE_CONFLICT | backupId: a backup that is complete',
  )
})

test('a server that stops ends its backup, and the next start removes what is left', {
  tags: ['slow'],
}, async () => {
  const kept = await made()
  expect((await create()).status).toBe(201)
  await backups.close()
  expect((await listed())[0]).toMatchObject({ state: 'failed', failureCode: 'UNAVAILABLE' })
  // A process that is killed leaves files, a copy of the control database and a row that runs.
  const { root } = gateway.harness
  root.control.transaction((tx) => {
    tx.run(`update backups set state = 'running', finished_at = null, failure_code = null
             where state = 'failed'`)
  })
  mkdirSync(join(directory(), 'bkp_left'), { recursive: true })
  writeFileSync(join(root.path, 'control.backup'), 'left')
  open({})
  expect((await listed()).map(({ state }) => state)).toEqual(['failed', 'complete'])
  expect(readdirSync(directory())).toEqual([kept.backupId])
  expect(existsSync(join(root.path, 'control.backup'))).toBe(false)
})

test('few downloads of backups are open at one time', { tags: ['slow'] }, async () => {
  const { backupId } = await made()
  const opened = await Promise.all(
    Array.from({ length: BACKUP_DOWNLOADS_MAX }, () => routes.send('GET', `/${backupId}/content`)),
  )
  expect(opened.map(({ status }) => status)).toEqual(opened.map(() => 200))
  expect(await rejection(await routes.send('GET', `/${backupId}/content`))).toMatch(
    /^503 PRODUCT_UNAVAILABLE/,
  )
  await opened[0]!.bytes()
  expect((await routes.send('GET', `/${backupId}/content`)).status).toBe(200)
})

test('a development server makes no backups', { tags: ['slow'] }, async () => {
  const response = await new BackupRoutes(gateway, null).send('POST', '', {
    body: { ...at(), recipients: [recipient] },
    operationId: newId(),
  })
  expect(await rejection(response)).toMatch(
    /^409 PRODUCT_STATE_CONFLICT \| backup: made by svc-server/,
  )
})
