/**
 * @module-tag slow
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type BackedUpServer,
  backedUpServer,
  HISTORY,
  RestorePlace,
  write,
} from '../../../testing/backups/backed-up-server.ts'
import { insertBackup, listBackups } from '../../storage/control/backups.ts'
import {
  openProductRoot,
  PEPPERS_DIRECTORY,
  RESTORED_PEPPER_FILE,
  RESTORED_SUBJECT_PEPPERS_FILE,
} from '../../storage/root.ts'
import { realSystem } from '../../system/system.ts'
import { Secret } from '../../value/secret.ts'

let server: BackedUpServer
let places: RestorePlace[]

beforeEach(async () => {
  places = []
  server = await backedUpServer('sqlite')
  await server.commit(1, write('notes', 1, '{}'))
})
afterEach(async () => {
  for (const place of places) await place.dispose()
  await server.dispose()
})

async function place(): Promise<RestorePlace> {
  const made = await RestorePlace.make('sqlite')
  places.push(made)
  return made
}

test('peppers are private files of the root, only where that is asked for', async () => {
  for (const [pepper, byte] of [
    ['identity', 1],
    ['oidc-subject:people', 2],
    ['oidc-subject:lost', 3],
  ] as const) {
    await server.parts.identity.rows(
      `insert into service_platform_pepper_checks (pepper, check_digest, recorded_at_micros)
       values ($1, $2, 1) on conflict (pepper) do update set check_digest = $2`,
      [pepper, Buffer.alloc(32, byte)],
    )
  }
  const subjects = [{ providerId: 'people', subjectPepper: new Secret('canary-subject') }]
  await server.base({ identity: new Secret('canary-pepper'), subjects })
  const restored = await place()
  const { peppers } = await restored.restore(server, { restoresPeppers: true })
  expect(peppers.identity?.reveal()).toBe('canary-pepper')
  expect(peppers.identityCheck).toEqual(Buffer.alloc(32, 1))
  expect(peppers.subjects).toEqual(['people'])
  expect(peppers.missingSubjects).toEqual(['lost'])
  const file = join(restored.root, RESTORED_PEPPER_FILE)
  expect(readFileSync(file, 'utf8')).toBe('canary-pepper')
  const subjectsFile = join(restored.root, RESTORED_SUBJECT_PEPPERS_FILE)
  expect(JSON.parse(readFileSync(subjectsFile, 'utf8'))).toEqual({ people: 'canary-subject' })
  for (const path of [file, subjectsFile]) expect(statSync(path).mode & 0o777).toBe(0o600)
  const without = await place()
  await without.restore(server)
  expect(existsSync(join(without.root, PEPPERS_DIRECTORY))).toBe(false)
})

test('a backup without peppers restores none', async () => {
  await server.base()
  const restored = await place()
  const { peppers } = await restored.restore(server, { restoresPeppers: true })
  expect(peppers).toMatchObject({ identity: null, subjects: [] })
  expect(existsSync(join(restored.root, PEPPERS_DIRECTORY))).toBe(false)
})

test('the list of backups of a restored server is empty', async () => {
  const { control } = server.parts.root
  const backupId = realSystem().ids.make('bkp')
  control.transaction((tx) => {
    const row = { backupId, historyId: HISTORY, createdAtMicros: 1n }
    insertBackup(tx, { ...row, reason: 'requested', location: 'root' })
  })
  await server.base()
  const restored = await place()
  await restored.restore(server)
  const root = await openProductRoot(restored.root, realSystem())
  expect(root.control.read((reader) => listBackups(reader, 10))).toEqual([])
  root.close()
})
