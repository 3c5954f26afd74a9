import { beforeEach, expect, test } from 'vitest'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'
import type { BackupCheckRequest, CheckedBackup } from '../../development/workspace-tools.ts'

const CHECKED: CheckedBackup = {
  environmentId: 'env_01MCC5RM00440WAKYHT0DB49BM',
  historyId: 'hst_01MCC5RM00440WAKYHT0DB49BM',
  sequence: 7,
  atMicros: 1_800_000_000_000_000n,
  segments: 3,
  files: 2,
  fileBytes: 4_096,
  missingFiles: 0,
  restored: null,
}

let client: TestClient
let checked: CheckedBackup
let requested: BackupCheckRequest[]
beforeEach(async () => {
  ;({ client } = await linkedClient())
  checked = CHECKED
  requested = []
  client.tools = {
    checkBackup: async (request) => {
      requested.push(request)
      return checked
    },
  }
})

const verify = (...line: string[]) => client.run('backup', 'verify', '/backups', ...line)

test('a whole backup is described', async () => {
  const { exit, out } = await verify('--identity', '/backup.key')
  expect(exit).toBe(0)
  expect(out).toContain('sequence 7')
  expect(out).toContain('Segments: 3. Files and artifacts: 2, 4096 bytes.')
  expect(out).not.toContain('lacks')
  expect(requested).toMatchObject([{ from: '/backups', restores: false, databaseUrl: null }])
})

test('the number of files whose bytes are missing is printed, and is in the JSON', async () => {
  checked = { ...CHECKED, missingFiles: 2 }
  const { out } = await verify('--identity', '/backup.key')
  expect(out).toContain('The backup lacks the bytes of 2 files')
  const { out: json } = await verify('--identity', '/backup.key', '--json')
  expect(JSON.parse(json)).toMatchObject({ version: 1, missingFiles: 2 })
})

test('the digest of a restore is printed', async () => {
  checked = { ...CHECKED, restored: { documents: 5, merkle: 'a'.repeat(64) } }
  const { out } = await verify('--identity', '/backup.key', '--restore')
  expect(out).toContain(`Restored documents: 5, with the digest ${'a'.repeat(64)}.`)
  expect(requested).toMatchObject([{ restores: true }])
})

test('a verification needs an identity, and a database needs a restore', async () => {
  expect((await verify()).exit).toBe(2)
  const database = 'postgres://localhost/empty'
  expect((await verify('--identity', '/k', '--database', database)).exit).toBe(2)
  expect(requested).toEqual([])
})
