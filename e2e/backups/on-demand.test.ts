/**
 * Whole backups of the compiled server, made and read by the compiled client.
 *
 * @module-tag slow
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyArchive } from '../../testing/management/backups.ts'
import { type Application, application, mutation, string } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENTS, call, run } from '../harness.ts'

const GUIDE = join(import.meta.dirname, '../../src/docs/backup.md')

let directory: string
let app: Application
let recipient: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-backups-'))
  const { command } = CLIENTS[0]!
  const line = argv`${command} backup keygen --out ${join(directory, 'backup.key')}`
  const made = await run(line, { environment: { SERVICE_CONFIG_HOME: directory } })
  expect([made.status, made.stderr]).toEqual([0, expect.stringContaining('keep it safe')])
  recipient = made.stdout.trim()
  app = await application(undefined, { SERVICE_BACKUP_RECIPIENTS: recipient })
  for (const name of ['general', 'random']) {
    const channel = { name: string(name), author: string('ana') }
    const created = await mutation(app, { function: 'channels.create', arguments: channel })
    expect(created.status).toBe(200)
  }
})
afterAll(async () => {
  await app?.installation.dispose()
  rmSync(directory, { recursive: true })
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const identity = () => readFileSync(join(directory, 'backup.key'), 'utf8').split('\n')[1]!

test('a backup of a running server is made, listed, downloaded and opened', async () => {
  const backup = await app.svc(argv`backup create ${remote()}`)
  expect(backup).toMatchObject({ state: 'complete', location: 'root', damaged: '0' })
  const { backupId } = backup
  const { items } = await app.svc(argv`backup list ${remote()}`)
  expect(items).toMatchObject([{ backupId, state: 'complete' }])
  expect((await app.svc(argv`backup show ${backupId} ${remote()}`)).documents).toBe(
    backup.documents,
  )
  const file = join(directory, 'backup.tar')
  await app.svc(argv`backup download ${backupId} --out ${file} ${remote()}`)
  const { counts, sequence } = await verifyArchive(readFileSync(file), identity())
  expect([String(sequence), String(counts.document)]).toEqual([backup.sequence, backup.documents])
  expect(counts.document).toBeGreaterThanOrEqual(2)
  expect(counts.identity).toBeGreaterThan(0)
  expect(counts.artifact).toBeGreaterThan(0)
  const audit = await app.svc(argv`audit --limit 100`)
  const operations = audit.items.map(({ operation }: { operation: string }) => operation)
  expect(operations).toContain('product.backup.create')
  expect(operations).toContain('product.backup.read')
})

test('the archive and the target hold no name that a document has', async () => {
  const root = join(app.installation.productRoot, 'backups')
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
  for (const entry of files.filter((each) => each.isFile())) {
    const bytes = readFileSync(join(entry.parentPath, entry.name))
    expect(bytes.includes('general'), entry.name).toBe(false)
  }
})

test('a request cannot name another recipient than the settings', async () => {
  const other = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
  const line = argv`backup create --recipient ${other} ${remote()} --json`
  const { status, stdout } = await app.installation.svc(line)
  expect([status, stdout]).toEqual([8, expect.stringContaining('PRODUCT_INVALID')])
})

test('strangers and Application Keys reach no backup', async () => {
  const { projectId, environmentId } = JSON.parse(
    readFileSync(join(app.installation.productRoot, 'service.json'), 'utf8'),
  )
  const base = `/v1/projects/${projectId}/environments/${environmentId}/backups`
  for (const path of [base, `${base}/bkp_01JZ0000000000000000000000/content`]) {
    expect((await call(app.server.management, 'GET', path)).status).toBe(401)
    const reply = await call(app.server.management, 'GET', path, { token: app.key })
    expect(reply.status).toBe(401)
  }
})

test('a backup survives a restart of the server', async () => {
  const { items } = await app.svc(argv`backup list ${remote()}`)
  await app.restart('kill')
  expect((await app.svc(argv`backup list ${remote()}`)).items).toEqual(items)
})

test('the guide has the commands of these tests', () => {
  const guide = readFileSync(GUIDE, 'utf8')
  for (const command of [
    'svc backup keygen --out backup.key',
    'svc backup create\n',
    'svc backup list\n',
    'svc backup show bkp_',
    'svc backup download bkp_',
    'svc backup create --recipient age1',
  ]) {
    expect(guide).toContain(command)
  }
})
