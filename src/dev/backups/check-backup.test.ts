/**
 * @module-tag slow
 */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  ADDRESS,
  type BackedUpServer,
  backedUpServer,
  write,
} from '../../../testing/backups/backed-up-server.ts'
import { checkBackup } from './check-backup.ts'

let server: BackedUpServer
let identity: string

beforeEach(async () => {
  server = await backedUpServer('sqlite')
  identity = join(server.parts.directory, 'backup.key')
  await Bun.write(identity, `${server.parts.secret}\n`)
  const stored = await server.storeFile(Buffer.from('bytes of a file'))
  await server.commit(1, write('notes', 1, '{"body":"one"}'), write('fil', 2, stored))
})
afterEach(() => server.dispose())

const check = (restores: boolean) =>
  checkBackup({
    from: server.parts.target.location,
    identities: [identity],
    environmentId: ADDRESS.environmentId,
    historyId: ADDRESS.historyId,
    restores,
    databaseUrl: null,
    variables: {},
    onProgress: () => undefined,
  })

test.each([false, true])(
  'files whose bytes the backup lacks are counted (%s)',
  async (restores) => {
    await server.base()
    expect(await check(restores)).toMatchObject({ sequence: 1, files: 1, missingFiles: 0 })
    const { text } = write('fil', 3, await server.storeFile(Buffer.from('never in the target')))
    const id = write('fil', 3, '{}').id
    await server.increment({ from: 1, to: 2 }, [
      { t: 'commit', sequence: 2, atMicros: '9' },
      { t: 'document', id, createdAtMicros: '1', sequence: 2, text },
    ])
    expect(await check(restores)).toMatchObject({ sequence: 2, files: 1, missingFiles: 1 })
  },
)

test('bytes that the backup names and its target lacks are damage', async () => {
  await server.base()
  const directory = server.parts.target.location
  const files = readdirSync(directory, { recursive: true }).map(String)
  rmSync(join(directory, files.find((name) => /blobs\/.*\.age$/.test(name))!))
  await expect(check(false)).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
})
