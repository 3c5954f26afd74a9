import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { identityToRecipient } from 'age-encryption'
import { beforeEach, expect, test } from 'vitest'
import type { FakeServer } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const REMOTE = ['--remote', '--root', 'root']
const ID = 'bkp_01MCC5RM00440WAKYHT0DB49BM'
const RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
const RUNNING = {
  backupId: ID,
  historyId: 'hst_01MCC5RM00440WAKYHT0DB49BM',
  reason: 'requested',
  location: 'root',
  state: 'running',
  createdAtMicros: '1800000000000000',
  finishedAtMicros: null,
  sequence: null,
  documents: null,
  bytes: null,
  damaged: null,
  failureCode: null,
}
const COMPLETE = {
  ...RUNNING,
  state: 'complete',
  finishedAtMicros: '1800000001000000',
  sequence: '120',
  documents: '7',
  bytes: '4096',
  damaged: '0',
}
const FAILED = { ...RUNNING, state: 'failed', finishedAtMicros: '1', failureCode: 'UNAVAILABLE' }
const operation = {
  version: 1,
  operationId: 'opn_01MCC5RM00440WAKYHT0DB49BM',
  kind: 'backup.create',
  outcome: 'applied',
  replayed: false,
  revision: '0',
  createdAtMicros: '1800000000000000',
}

let server: FakeServer
let client: TestClient
/** The states that the server answers, one after the other; the last one again and again. */
let states: (typeof RUNNING | typeof COMPLETE)[]
let archive: string
let sent: unknown[]
beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  states = [COMPLETE]
  archive = `content${'\0'.repeat(1_024)}`
  sent = []
  server.intercept = ({ method, path, body }) => {
    if (!path.includes('/backups')) return null
    if (path.endsWith('/content')) {
      return { status: 200, text: archive, headers: { 'content-type': 'application/x-tar' } }
    }
    if (method === 'POST') {
      sent.push(JSON.parse(body!))
      return { status: 201, body: { version: 1, ...RUNNING, operation } }
    }
    if (path.endsWith('/backups'))
      return { status: 200, body: { version: 1, items: [COMPLETE, FAILED] } }
    const state = states.length > 1 ? states.shift()! : states[0]!
    return { status: 200, body: { version: 1, ...state } }
  }
})

const run = (...line: string[]) => client.run('backup', ...line)

test('create waits for the end of the backup and says what it has', {
  tags: ['slow'],
}, async () => {
  states = [RUNNING, COMPLETE]
  const { exit, out } = await run('create', '--recipient', RECIPIENT, ...REMOTE)
  expect(exit).toBe(0)
  expect(out).toContain(`${ID} is complete: 7 documents up to sequence 120`)
  expect(sent).toMatchObject([{ recipients: [RECIPIENT] }])
})

test('create names no recipients where the settings of the server do', async () => {
  const { exit, out } = await run('create', '--no-wait', ...REMOTE)
  expect([exit, out]).toEqual([0, expect.stringContaining(`svc backup show ${ID}`)])
  expect(Object.keys(sent[0] as object)).toEqual(['changedAtMicros'])
})

test('create fails as the backup does', async () => {
  states = [FAILED as never]
  const { exit, err } = await run('create', ...REMOTE)
  expect([exit, err]).toEqual([5, expect.stringContaining(`${ID} failed with UNAVAILABLE`)])
})

test('create says what to do where the target has another file system', async () => {
  states = [{ ...FAILED, failureCode: 'BACKUP_TARGET_CHANGED' } as never]
  const { exit, err } = await run('create', ...REMOTE)
  expect(exit).toBe(5)
  expect(err).toContain('BACKUP_TARGET_CHANGED')
  expect(err).toContain('Mount the file system of the backups again')
})

test('a mistyped recipient is rejected before any request', async () => {
  const { exit } = await run('create', '--recipient', `${RECIPIENT.slice(0, -1)}p`, ...REMOTE)
  expect([exit, sent]).toEqual([2, []])
})

test('the list shows states and reasons of failures', async () => {
  const { exit, out } = await run('list', ...REMOTE)
  expect([exit, out]).toEqual([0, expect.stringMatching(/complete.*120.*\n.*failed: UNAVAILABLE/)])
})

test('show prints one backup', async () => {
  expect((await run('show', ID, ...REMOTE)).out).toContain('complete')
  expect((await run('show', 'bkp_1', ...REMOTE)).exit).toBe(2)
})

test('download writes the whole archive into a private file, and replaces none', async () => {
  const file = join(client.home, 'backup.tar')
  expect((await run('download', ID, '--out', file, ...REMOTE)).exit).toBe(0)
  expect(readFileSync(file, 'latin1')).toBe(archive)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const { exit, err } = await run('download', ID, '--out', file, ...REMOTE)
  expect([exit, err]).toEqual([1, expect.stringContaining('exists already')])
})

test('an archive that was cut off leaves no file', async () => {
  archive = 'content'
  const file = join(client.home, 'backup.tar')
  expect((await run('download', ID, '--out', file, ...REMOTE)).exit).not.toBe(0)
  for (const path of [file, `${file}.part`]) expect(() => statSync(path)).toThrow('ENOENT')
})

test('keygen makes a private file whose recipient it prints', async () => {
  const file = join(client.home, 'backup.key')
  const { exit, out } = await run('keygen', '--out', file)
  expect(exit).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const lines = readFileSync(file, 'utf8').split('\n')
  expect(lines[0]).toBe(`# public key: ${out.trim()}`)
  expect(await identityToRecipient(lines[1]!)).toBe(out.trim())
  expect(out).not.toContain('AGE-SECRET-KEY')
  expect((await run('keygen', '--out', file)).exit).toBe(1)
})
