import { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { codeBlocks } from '../../../testing/markdown/markdown.ts'
import { earlierDocuments } from '../../../testing/migrations/earlier-databases.ts'
import {
  type EarlierServer,
  earlierServer,
  newServer,
} from '../../../testing/migrations/earlier-servers.ts'
import { makeIdentity, recipientOf } from '../../backups/format/age-files.ts'
import { SCHEMA_VERSION } from '../../database/migrate.ts'
import { MIGRATIONS as DOCUMENTS } from '../../documents/sqlite/migrations.generated.ts'
import { MIGRATIONS as CONTROL } from '../../storage/migrations.generated.ts'
import { openProductRoot } from '../../storage/root.ts'
import { realSystem } from '../../system/system.ts'

async function report({ run }: EarlierServer) {
  const { exit, out } = await run('upgrade', '--check', '--json')
  return { exit, ...JSON.parse(out) }
}

test('a check of a new server finds nothing to migrate', async () => {
  const found = await newServer()
  expect(await report(found)).toMatchObject({
    exit: 0,
    version: 1,
    outcome: 'ready',
    running: false,
    previousCanStart: true,
    databases: [
      { name: 'identity', store: 'postgresql', found: 0, target: SCHEMA_VERSION, pending: [] },
      { name: 'control', store: 'sqlite', found: 0, target: CONTROL.length },
      { name: 'documents', store: 'sqlite', found: 0, target: DOCUMENTS.length },
      { name: 'logs', found: 0 },
    ],
  })
  const { out } = await found.run('upgrade', '--check')
  expect(out).toContain('control (SQLite): does not exist yet')
  expect(out).toContain('This version starts by itself')
})

test('the databases are in one order, wherever the documents are', async () => {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  for (const settings of [{}, { SERVICE_PLATFORM_DATABASE_URL: url }]) {
    const { databases } = await report(await newServer(settings))
    const names = databases.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['identity', 'control', 'documents', 'logs'])
  }
})

test('a check of an earlier server names each migration, and changes nothing', {
  tags: ['slow'],
}, async () => {
  const found = await earlierServer({ SERVICE_NO_SUCH_SETTING: 'x' })
  const before = found.files()
  const rows = () => found.database.rows('select * from service_platform_migrations')
  const recorded = await rows()
  const { exit, databases, settings, ...rest } = await report(found)
  expect(exit).toBe(4)
  expect(rest).toMatchObject({
    outcome: 'one-way',
    previousCanStart: false,
    backup: null,
    seconds: 1,
  })
  expect(rest.disk.neededBytes).toBe(2 * statSync(join(found.root, 'documents.db')).size)
  expect(rest.disk.freeBytes).toBeGreaterThan(0)
  const [identity, control, documents] = databases
  expect(identity).toMatchObject({ found: 3, target: SCHEMA_VERSION, oneWay: true })
  expect(control.pending).toHaveLength(CONTROL.length - 3)
  expect(control.pending[0]).toEqual({
    version: 4,
    name: 'published-keys',
    change: expect.stringMatching(/^The newest key set that each JWT provider published.*\.$/),
    oneWay: true,
    seconds: 0,
  })
  expect(documents).toMatchObject({ found: 1, documents: 40, oneWay: true })
  expect(documents.pending[1]).toMatchObject({ name: 'compact-texts', seconds: 0.004 })
  expect(settings.unknown).toEqual(['SERVICE_NO_SUCH_SETTING'])
  expect(settings.changes.map(({ change }: { change: string }) => change)).toContain('new')
  const { exit: code, out } = await found.run('upgrade', '--check')
  expect(code).toBe(4)
  expect(out).toContain(`documents (SQLite): schema version 1 to ${DOCUMENTS.length}, about 1 s`)
  expect(out).toContain('No backup would be made before: make one')
  expect(found.files()).toEqual(before)
  expect(await rows()).toEqual(recorded)
})

test('a migration brings each database to this version, and can be repeated', {
  tags: ['slow'],
}, async () => {
  const found = await earlierServer()
  const { exit, out } = await found.run('migrate')
  expect([exit, out.split('\n')]).toEqual([
    0,
    [
      `The identity database went from schema version 3 to ${SCHEMA_VERSION}.`,
      `The control database went from schema version 3 to ${CONTROL.length}.`,
      `The document database went from schema version 1 to ${DOCUMENTS.length}.`,
      '',
    ],
  ])
  expect(await report(found)).toMatchObject({ exit: 0, outcome: 'ready' })
  const again = await found.run('migrate')
  expect([again.exit, again.out]).toEqual([
    0,
    `The identity database is at schema version ${SCHEMA_VERSION} already.\n`,
  ])
})

test('a root that a server uses is checked, and not migrated', { tags: ['slow'] }, async () => {
  const found = await newServer()
  const root = await openProductRoot(found.root, realSystem())
  onTestFinished(() => root.close())
  expect(await report(found)).toMatchObject({ exit: 0, running: true, outcome: 'ready' })
  earlierDocuments(found.root, 1)
  expect(await report(found)).toMatchObject({ exit: 4, running: true, outcome: 'one-way' })
  const { exit, err } = await found.run('migrate')
  expect(exit).toBe(1)
  expect(err).toContain('SERVER_PRODUCT_ROOT_LOCKED')
  expect(await report(found)).toMatchObject({ databases: [{ found: 0 }, {}, { found: 1 }, {}] })
})

test('a database of a newer version blocks, with the reason', async () => {
  const found = await newServer()
  ;(await openProductRoot(found.root, realSystem())).close()
  const control = new Database(join(found.root, 'control.db'))
  const later = CONTROL.length + 1
  control.run(`insert into control_migrations values (?1, 'later', 'x', 1, ?1)`, [later])
  control.close()
  const { exit, outcome, databases } = await report(found)
  expect([exit, outcome]).toEqual([1, 'blocked'])
  expect(databases[1].problem).toContain(
    `SERVER_DATABASE_NEWER: A newer version of this program has changed a database, and this ` +
      `one cannot use it. (control.db: schema version ${later} is unknown to this program)`,
  )
  expect((await found.run('migrate')).err).toContain('SERVER_DATABASE_NEWER')
})

test('the commands of the guide take an earlier server forward and back in order', {
  tags: ['slow'],
}, async () => {
  const places = mkdtempSync(join(tmpdir(), 'svc-upgrade-guide-'))
  onTestFinished(() => rmSync(places, { recursive: true, force: true }))
  const secret = await makeIdentity()
  writeFileSync(join(places, 'backup.key'), `${secret}\n`, { mode: 0o600 })
  const directory = join(places, 'backups')
  mkdirSync(directory)
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  const found = await earlierServer(
    {
      SERVICE_BACKUP_RECIPIENTS: await recipientOf(secret),
      SERVICE_BACKUP_DIRECTORY: directory,
    },
    { identity: 7, control: 13 },
  )
  const guide = readFileSync(join(import.meta.dirname, '../../docs/upgrade.md'), 'utf8')
  const lines = codeBlocks(guide)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.split('\n'))
  /** Values of this test for arguments of the guide. */
  const values: Record<string, string> = {
    '--from': directory,
    '--identity': join(places, 'backup.key'),
    '--root': join(places, 'root'),
    '--database': url,
  }
  const exits: [string, number][] = []
  for (const line of lines.filter((each) => each.startsWith('svc-server '))) {
    const args = line.split(' ').slice(1)
    const given = args.map((arg, i) => values[args[i - 1] ?? ''] ?? arg)
    const { exit, err } = await found.run(...given)
    exits.push([args[0]!, exit])
    const warning = err.split('\n').find((each) => each.includes('database.migrates_one_way'))
    if (warning === undefined) continue
    const { historyId, restoreTime } = JSON.parse(warning)
    values['--history'] = historyId
    values['--to-time'] = restoreTime
  }
  expect(exits).toEqual([
    ['upgrade', 4],
    ['migrate', 0],
    ['restore', 0],
  ])
  expect(await report(found)).toMatchObject({ exit: 0, outcome: 'ready' })
})
