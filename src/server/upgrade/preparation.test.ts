/**
 * Goal: before migrations that are one way, one warning is written and a backup is made that an
 * earlier version could restore. Method: modes of the server run on databases of an earlier
 * version, and the backup is restored.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { type EarlierServer, earlierServer } from '../../../testing/migrations/earlier-servers.ts'
import { makeIdentity, recipientOf } from '../../backups/format/age-files.ts'
import { migrate } from '../../database/migrate.ts'
import { parseSettings } from '../../settings/settings.ts'
import { listBackups } from '../../storage/control/backups.ts'
import { openProductRoot } from '../../storage/root.ts'
import { realSystem } from '../../system/system.ts'
import { createLog } from '../../telemetry/log.ts'
import { prepareMigrations, restoreTime } from './preparation.ts'

const VERSIONS = { identity: 3, control: 3, documents: 1 }

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-preparation-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

function warnings(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === 'database.migrates_one_way')
}

async function versions({ run }: EarlierServer) {
  const { databases } = JSON.parse((await run('upgrade', '--check', '--json')).out)
  return Object.fromEntries(
    databases.map(({ name, found }: Record<string, unknown>) => [name, found]),
  )
}

async function recipient(): Promise<{ file: string; recipient: string }> {
  const secret = await makeIdentity()
  const file = join(temporary(), 'backup.key')
  writeFileSync(file, `${secret}\n`, { mode: 0o600 })
  return { file, recipient: await recipientOf(secret) }
}

test.each(['migrate', 'verify-storage', 'rotate-keys'])(
  '%s migrates by itself, after one warning that no backup was made',
  { tags: ['slow'] },
  async (mode) => {
    const found = await earlierServer()
    const { exit, err } = await found.run(mode)
    expect(exit).toBe(0)
    expect(warnings(err)).toEqual([
      expect.objectContaining({
        level: 'warn',
        message: expect.stringMatching(
          /^Schema versions change so .*control from 3 to \d+.* No backup was made before\.$/,
        ),
        databases: expect.arrayContaining(['control']),
      }),
    ])
    expect(warnings((await found.run(mode)).err)).toEqual([])
  },
)

test('a backup that the earlier version could restore is made in the root first', {
  tags: ['slow'],
}, async () => {
  const { file, recipient: of } = await recipient()
  const found = await earlierServer({ SERVICE_BACKUP_RECIPIENTS: of })
  const check = JSON.parse((await found.run('upgrade', '--check', '--json')).out)
  expect(check).toMatchObject({ outcome: 'one-way', backup: 'root' })
  const { exit, err } = await found.run('migrate')
  expect([exit, warnings(err)]).toMatchObject([0, [{ sequence: 40 }]])
  const [{ backupId, historyId } = {}] = warnings(err)
  const root = await openProductRoot(found.root, realSystem())
  const listed = root.control.read((reader) => listBackups(reader, 10))
  root.close()
  expect(listed).toMatchObject([
    {
      backupId,
      historyId,
      location: 'root',
      state: 'complete',
      result: { documents: 40, damaged: 0 },
    },
  ])
  expect(listed[0]!.result!.bytes).toBeGreaterThan(1_000)
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  const target = join(temporary(), 'root')
  const from = join(found.root, 'backups', String(backupId))
  const args = ['--from', from, '--identity', file, '--root', target, '--database', url, '--json']
  const restored = await found.run('restore', ...args)
  expect(restored.exit).toBe(0)
  expect(JSON.parse(restored.out)).toMatchObject({ documents: 40, sequence: 40 })
})

test('no migration is made if the target of backups cannot be reached', {
  tags: ['slow'],
}, async () => {
  const { recipient: of } = await recipient()
  const directory = join(temporary(), 'missing/backups')
  const found = await earlierServer({
    SERVICE_BACKUP_RECIPIENTS: of,
    SERVICE_BACKUP_DIRECTORY: directory,
  })
  const { exit, err } = await found.run('migrate')
  expect(exit).toBe(1)
  expect(err).toContain('SERVER_UPGRADE_BACKUP_FAILED')
  expect(await versions(found)).toMatchObject(VERSIONS)
  mkdirSync(directory, { recursive: true })
  expect((await found.run('migrate')).exit).toBe(0)
})

/** Prepares the migrations of a start, and returns the backup that it made or found. */
async function prepare(found: EarlierServer): Promise<unknown> {
  let text = ''
  const sink = (line: string) => {
    text += line
  }
  const system = realSystem()
  const log = createLog({ system, sink, level: 'warn' })
  const configuration = parseSettings(found.settings, 'serve')
  await prepareMigrations({ configuration, identity: found.database, system, log })
  return warnings(text)[0]?.backupId
}

test('starts that fail before their migrations leave one backup in the root', {
  tags: ['slow'],
}, async () => {
  const { recipient: of } = await recipient()
  const settings = { SERVICE_BACKUP_RECIPIENTS: of }
  const found = await earlierServer(settings, { identity: 7, control: 13 })
  await prepare(found)
  await prepare(found)
  const last = await prepare(found)
  expect(readdirSync(join(found.root, 'backups'))).toEqual([last])
  const [entry] = warnings((await found.run('migrate')).err)
  expect(readdirSync(join(found.root, 'backups'))).toEqual([entry!.backupId])
  const root = await openProductRoot(found.root, realSystem())
  const listed = root.control.read((reader) => listBackups(reader, 10))
  root.close()
  expect(listed.map(({ backupId }) => backupId)).toEqual([entry!.backupId])
})

test('migrations that were interrupted keep the backup from before them', {
  tags: ['slow'],
}, async () => {
  const { recipient: of } = await recipient()
  const directory = temporary()
  const settings = { SERVICE_BACKUP_RECIPIENTS: of, SERVICE_BACKUP_DIRECTORY: directory }
  const found = await earlierServer(settings, { identity: 7, control: 13 })
  await prepare(found)
  // Nothing has begun, so the earlier version may have run since.
  const second = await prepare(found)
  await migrate(found.database, 1n)
  expect(await prepare(found)).toBe(second)
  const [entry] = warnings((await found.run('migrate')).err)
  expect(entry).toMatchObject({ backupId: second })
  const sidecars = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(directory, name), 'utf8')))
  expect(sidecars.filter(({ kind }) => kind === 'base')).toHaveLength(2)
})

test('the time to restore names the microsecond', () => {
  expect(restoreTime({ atMicros: '1700000000000007' })).toBe('2023-11-14T22:13:20.000007Z')
})
