import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type BackedUpServer, HISTORY, write } from '../../../testing/backups/backed-up-server.ts'
import {
  CopiedServer,
  type CopyOptions,
  change,
  documentsOf,
  PEOPLE,
  person,
  REDACTION,
  withStore,
} from '../../../testing/backups/copied-servers.ts'
import { documentId, operationRecord } from '../../../testing/documents/store-fixtures.ts'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { Fault } from '../../errors/fault.ts'
import { readDocumentsSequence } from '../../storage/control/environment.ts'
import { openProductRoot } from '../../storage/root.ts'
import { realSystem } from '../../system/system.ts'
import type { MigrationManifest } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import type { BackupRecord } from '../../wire/files/backups.ts'
import { BackupFiles } from './backup-files.ts'
import { readCopyRecord } from './copy-record.ts'

const STRING = { type: 'string' } as const
const FILE = Buffer.from('bytes of a stored file')

let copied: CopiedServer
let server: BackedUpServer

beforeEach(async () => {
  copied = await CopiedServer.open()
  server = copied.server
})
afterEach(() => copied.dispose())

describe('a copy', () => {
  test('a copy has the documents of the newest state with their sequences', {
    tags: ['slow'],
  }, async () => {
    await server.commit(1, person(1, {}), person(2, {}), person(3, { name: 'gone' }))
    await server.base()
    await server.increment({ from: 1, to: 3 }, [
      { t: 'commit', sequence: 2, atMicros: '2' },
      change(2, 2, '{"email":"b@example.com","name":"Bo"}'),
      change(4, 2, '{"email":"d@example.com","name":"Di"}'),
      { t: 'commit', sequence: 3, atMicros: '3' },
      change(3, 3, null),
      change(4, 3, '{"email":"d@example.com","name":"Dia"}'),
    ])
    const root = copied.newRoot()
    const made = await copied.copy(root)
    expect(made).toMatchObject({
      tables: [{ table: 'people', documents: 3, leftOut: 0, rule: null }],
      record: { sequence: 3, environmentId: ENVIRONMENT_ID, historyId: HISTORY, redaction: null },
    })
    expect(
      (await documentsOf(root)).map(([, fields]) => (fields as { name: string }).name),
    ).toEqual(['Ana', 'Bo', 'Dia'])
    await withStore(root, async (store) => expect(store.latestSequence).toBe(3))
    const opened = await openProductRoot(root, realSystem())
    expect(opened.control.read(readDocumentsSequence)).toBe(3)
    opened.close()
    expect(existsSync(join(root, 'copy.unfinished'))).toBe(false)
  })

  test('a copy leaves out what the schema lacks or rejects, and says why', {
    tags: ['slow'],
  }, async () => {
    await server.commit(
      1,
      person(1, {}),
      write('people', 2, '{"email":"secret@example.com"}'),
      write('people', 3, '{"email":"secret@example.com","name":7}'),
      write('orders', 4, '{"total":1}'),
    )
    await server.base()
    await server.increment({ from: 1, to: 2 }, [
      { t: 'commit', sequence: 2, atMicros: '2' },
      change(2, 2, '{"email":"fits@example.com","name":"now"}'),
      change(1, 2, '{"name":"no longer"}'),
    ])
    const root = copied.newRoot()
    const made = await copied.copy(root)
    expect(made?.tables).toEqual([
      { table: 'orders', documents: 0, leftOut: 1, rule: null, fieldsLeftOut: [] },
      {
        table: 'people',
        documents: 1,
        leftOut: 2,
        rule: 'expected a required field (people.name)',
        fieldsLeftOut: [],
      },
    ])
    expect((await documentsOf(root)).map(([id]) => id)).toEqual([documentId('people', 2)])
  })

  test('a record of a migration that cannot be read is rejected with its segment', {
    tags: ['slow'],
  }, async () => {
    await server.commit(1, person(1, {}))
    await server.base()
    await server.increment({ from: 1, to: 2 }, [
      { t: 'commit', sequence: 2, atMicros: '2' },
      { ...change(2, 2, 'not JSON'), id: documentId('mig', 2) } as BackupRecord,
    ])
    await expect(copied.copy(copied.newRoot())).rejects.toMatchObject({
      code: 'BACKUP_CORRUPT',
      detail: expect.stringMatching(/\d{12}.*the record of a migration/),
    })
  })

  test('a copy names no entry of a record, whose name may be of a person', {
    tags: ['slow'],
  }, async () => {
    const labels = { type: 'record', values: STRING } as const
    const home = { type: 'object', fields: { labels } } as const
    const workspace = { tables: [{ ...PEOPLE, fields: { ...PEOPLE.fields, home } }] }
    await server.commit(1, person(1, { home: { labels: { jane: 7 } } }), person(2, { home: {} }))
    await server.base()
    const made = await copied.copy(copied.newRoot(), { workspace })
    expect(made?.tables[0]?.rule).toBe('expected a string (people.home.labels)')
    const redaction = { tables: { people: { home: { labels: { '*': { name: 'fake' } } } } } }
    await server.increment({ from: 1, to: 2 }, [
      { t: 'commit', sequence: 2, atMicros: '2' },
      change(1, 2, '{"email":"a","name":"b","home":{"labels":{"jane":"x"}}}'),
    ])
    await expect(copied.copy(copied.newRoot(), { workspace, redaction })).rejects.toMatchObject({
      detail: expect.not.stringContaining('jane'),
    })
  })

  test('a copy leaves out fields that the schema lacks, and names them', {
    tags: ['slow'],
  }, async () => {
    const home = { street: 'Elm 1', code: 'secret' }
    await server.commit(1, person(1, { ssn: 'secret', home }), person(2, {}))
    await server.base()
    const root = copied.newRoot()
    const made = await copied.copy(root)
    expect(made?.tables).toMatchObject([
      { table: 'people', documents: 2, leftOut: 0, fieldsLeftOut: ['home.code', 'ssn'] },
    ])
    const [[, first]] = (await documentsOf(root)) as [[string, object]]
    expect(first).toEqual({ email: 'a@example.com', name: 'Ana', home: { street: 'Elm 1' } })
    expect(readFileSync(join(root, 'documents.db')).includes('secret')).toBe(false)
  })

  test('documents that do not fit yet are copied if a migration follows', {
    tags: ['slow'],
  }, async () => {
    const migration = (name: string, digest: string): MigrationManifest => ({
      name,
      digest,
      table: 'people',
      index: null,
      batch: 100,
    })
    const record = (name: string, state: string) =>
      encodeStored(new Map(Object.entries({ name, digest: 'one', state })))
    await server.commit(
      1,
      write('people', 1, '{"email":"old@example.com"}'),
      write('mig', 2, record('done', 'complete')),
      write('mig', 3, record('stopped', 'blocked')),
    )
    await server.base()
    const tablesOf = async (name: string) => {
      const root = copied.newRoot()
      await copied.copy(root, {
        workspace: { requires: [name], migrations: [migration(name, 'one')] },
      })
      return (await documentsOf(root)).map(([id]) => id.slice(0, id.lastIndexOf('_')))
    }
    expect(await tablesOf('fillNames')).toEqual(['mig', 'people'])
    expect(await tablesOf('done')).toEqual(['mig'])
  })

  test('a copy has no scheduled work, grants, records of operations or keys', {
    tags: ['slow'],
  }, async () => {
    const operation = operationRecord(1, { commitSequence: 1 })
    const own = ['sch', 'crn', 'upl', 's3u'].map((table, i) => write(table, i + 1, '{"state":"x"}'))
    const part = write('s3p', 8, await server.storeFile(FILE))
    const writes = [person(9, {}), ...own, part]
    await server.commitAll([{ sequence: 1, atMicros: 1n, writes, operation }])
    await server.base()
    const root = copied.newRoot()
    const before = readFileSync(join(root, 'keyring.json'))
    const made = await copied.copy(root)
    expect(made?.tables.map(({ table }) => table)).toEqual(['people'])
    expect(await documentsOf(root)).toHaveLength(1)
    await withStore(root, async (store) =>
      expect(await store.operation(operation.operationId)).toBeNull(),
    )
    expect(readFileSync(join(root, 'keyring.json'))).toEqual(before)
  })

  test('a copy reads files from the backup, and has none with "files": "none"', {
    tags: ['slow'],
  }, async () => {
    const text = await server.storeFile(FILE)
    await server.commit(1, person(1, {}), write('fil', 2, text))
    await server.base()
    const root = copied.newRoot()
    expect((await copied.copy(root))?.files).toBe(1)
    const record = readCopyRecord(root)!
    const failures: string[] = []
    const files = new BackupFiles({
      rootPath: root,
      record,
      variables: {},
      onFailure: (message) => failures.push(message),
    })
    const { sha256 } = JSON.parse(text)
    const content = { sha256, size: FILE.length }
    expect([files.has(content), files.has({ sha256, size: 1 })]).toEqual([true, false])
    const chunks: Uint8Array[] = []
    for await (const chunk of files.read(content)) chunks.push(chunk)
    expect(Buffer.concat(chunks)).toEqual(FILE)
    files.close()
    const without = copied.newRoot()
    expect((await copied.copy(without, { redaction: { tables: {}, files: 'none' } }))?.files).toBe(
      0,
    )
    expect((await documentsOf(without)).map(([id]) => id)).toEqual([documentId('people', 1)])
  })

  test('a copy says which backup the bytes of a file could not be read from', {
    tags: ['slow'],
  }, async () => {
    const text = await server.storeFile(FILE)
    await server.commit(1, write('fil', 2, text))
    await server.base()
    const root = copied.newRoot()
    await copied.copy(root)
    rmSync(copied.identity)
    const failures: string[] = []
    const record = readCopyRecord(root)!
    const onFailure = (message: string) => failures.push(message)
    const files = new BackupFiles({ rootPath: root, record, variables: {}, onFailure })
    const content = { sha256: JSON.parse(text).sha256, size: FILE.length }
    const read = async () => {
      for await (const _ of files.read(content)) expect.unreachable()
    }
    await expect(read()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(failures).toEqual([expect.stringContaining(`${record.from}: --identity`)])
    files.close()
  })
})

test('a copy that is stopped leaves the root as it was', { tags: ['slow'] }, async () => {
  await server.commit(1, person(1, {}))
  await server.base()
  const root = copied.newRoot()
  const stop = new AbortController()
  const stopped = copied.copy(root, { signal: stop.signal, onProgress: () => stop.abort() })
  await expect(stopped).rejects.toMatchObject({ name: 'AbortError' })
  expect(readdirSync(root).filter((name) => /^(?:copy|documents)/.test(name))).toEqual([])
})

test('a root that must not be filled is left as it was', async () => {
  await server.commit(1, person(1, {}))
  await server.base()
  const root = copied.newRoot()
  const fault = new Fault('CLIENT_ROOT_INVALID')
  const requireUsable = () => {
    throw fault
  }
  await expect(copied.copy(root, { requireUsable })).rejects.toBe(fault)
  expect(existsSync(join(root, 'documents.db'))).toBe(false)
})

describe('a root that has documents', () => {
  beforeEach(async () => {
    await server.commit(1, person(1, {}))
    await server.base()
  })

  test('a copy of this backup with this redaction stays as it is', { tags: ['slow'] }, async () => {
    const root = copied.newRoot()
    await copied.copy(root, { redaction: REDACTION })
    const before = await documentsOf(root)
    await server.increment({ from: 1, to: 2 }, [
      { t: 'commit', sequence: 2, atMicros: '2' },
      change(2, 2, '{"email":"b@example.com","name":"Bo"}'),
    ])
    expect(await copied.copy(root, { redaction: REDACTION })).toBeNull()
    expect(await documentsOf(root)).toEqual(before)
  })

  test.each<[string, CopyOptions]>([
    ['another redaction', { redaction: { tables: { people: { email: 'hash' } } } }],
    ['a copy of', { request: { from: '/elsewhere' } }],
  ])('a root with %s is not served as a copy', { tags: ['slow'] }, async (detail, options) => {
    const root = copied.newRoot()
    await copied.copy(root)
    await expect(copied.copy(root, options)).rejects.toMatchObject({
      code: 'COPY_ROOT_NOT_EMPTY',
      detail: expect.stringContaining(detail),
    })
  })

  test('a root with documents of its own is not replaced', { tags: ['slow'] }, async () => {
    const root = await copied.servedRoot()
    const store = await openSqliteDocuments(join(root, 'documents.db'))
    await store.setFieldShapes(new Map([['notes', { body: null }]]))
    await store.commit({
      transactions: [{ sequence: 1, atMicros: 1n, writes: [write('notes', 1, '{"body":"mine"}')] }],
    })
    await store.close()
    await expect(copied.copy(root)).rejects.toMatchObject({
      code: 'COPY_ROOT_NOT_EMPTY',
      detail: 'it has documents of its own',
    })
    expect(await documentsOf(root)).toEqual([[documentId('notes', 1), { body: 'mine' }]])
  })

  test('a root with documents of the server alone, as after a start, is filled', {
    tags: ['slow'],
  }, async () => {
    const root = await copied.servedRoot()
    const store = await openSqliteDocuments(join(root, 'documents.db'))
    await store.commit({
      transactions: [{ sequence: 7, atMicros: 1n, writes: [write('crn', 1, '{"name":"daily"}')] }],
    })
    await store.close()
    expect((await copied.copy(root))?.tables[0]?.documents).toBe(1)
    expect((await documentsOf(root)).map(([id]) => id)).toEqual([documentId('people', 1)])
  })
})

test('a backup of several Environments needs the choice of one', { tags: ['slow'] }, async () => {
  await server.commit(1, person(1, {}))
  await server.base()
  const root = copied.newRoot()
  const environmentId = 'env_00000000000000000000000009'
  await expect(copied.copy(root, { request: { environmentId } })).rejects.toMatchObject({
    code: 'RESTORE_POINT_NOT_FOUND',
  })
  const request = { environmentId: ENVIRONMENT_ID, historyId: HISTORY }
  expect((await copied.copy(root, { request }))?.tables[0]?.documents).toBe(1)
})
