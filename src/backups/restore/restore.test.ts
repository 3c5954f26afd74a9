/**
 * @module-tag slow
 */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type BackedUpServer,
  backedUpServer,
  type DocumentsIn,
  HISTORY,
  RestorePlace,
  write,
} from '../../../testing/backups/backed-up-server.ts'
import {
  documentId,
  EVERYTHING,
  found,
  operationRecord,
  whole,
} from '../../../testing/documents/store-fixtures.ts'
import { readIdentityRows } from '../../database/identity/all-rows.ts'
import { IDENTITY_KEYS } from '../../database/identity/restored-rows.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { findHistory, readDocumentsSequence } from '../../storage/control/environment.ts'
import { openProductRoot } from '../../storage/root.ts'
import { sha256Hex } from '../../system/digests.ts'
import { realSystem } from '../../system/system.ts'
import type { BackupRecord } from '../../wire/files/backups.ts'

const FILE = Buffer.from('bytes of a stored file')
const PACKAGE = Buffer.from('the artifact of a Release')
const OPERATOR = 'opr_00000000000000000000000001'
const SESSION = 'ops_00000000000000000000000001'

let server: BackedUpServer
let places: RestorePlace[]

afterEach(async () => {
  for (const place of places) await place.dispose()
  await server.dispose()
})

async function begin(documents: DocumentsIn): Promise<void> {
  places = []
  server = await backedUpServer(documents)
  await fill()
}

async function place(documents: DocumentsIn): Promise<RestorePlace> {
  const made = await RestorePlace.make(documents)
  places.push(made)
  return made
}

/** Writes documents, a file, a Release, an operator with a session, and a key. */
async function fill(): Promise<void> {
  const { store, root, identity } = server.parts
  await store.setFieldShapes(new Map([['notes', { body: null }]]))
  await store.ensureIndexes([{ table: 'notes', fields: ['body'], defaults: ['"x"'] }])
  await server.commit(1, write('notes', 2, '{"body":"two"}'), write('notes', 1, '{"body":"é"}'))
  const operation = operationRecord(1, { commitSequence: 2 })
  const writes = [write('fil', 3, await server.storeFile(FILE))]
  await server.commitAll([{ sequence: 2, atMicros: 2n, writes, operation }])
  await server.commit(3, write('notes', 2, null), write('notes', 4, '{"body":"four"}'))
  const digest = `sha256:${sha256Hex(PACKAGE)}`
  await root.artifacts.put(digest, PACKAGE)
  root.control.transaction((tx) => {
    tx.run(
      `insert into releases (release_id, workspace, state, package_digest, manifest_digest,
              manifest_bytes, artifact_digest, artifact_bytes, created_at)
       values ('rel_1', 'app', 'published', 'sha256:0', ?1, ?2, ?1, ?2, ?3)`,
      digest,
      PACKAGE.length,
      2n ** 62n + 1n,
    )
    tx.run(`insert into application_clients (client_id, name, kind, maximum_scopes, created_at)
            values ('app_1', 'web', 'public', '', 1)`)
    tx.run(
      `insert into application_credentials (credential_id, client_id, name, scopes, state,
              created_at, key_id, key_digest)
       values ('crd_1', 'app_1', 'first', '', 'active', 1, 'k1', ?1)`,
      Buffer.alloc(32, 7),
    )
  })
  await identity.rows(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ($1, $2, 5)`,
    [OPERATOR, 'Zoë "quoted", {a}'],
  )
  await identity.rows(
    `insert into service_operator_grants (operator_id, scope_kind, capabilities,
            created_at_micros, source)
     values ($1, 'installation', '{a,"b c"}', 5, 'legacy')`,
    [OPERATOR],
  )
  await identity.rows(
    `insert into service_operator_sessions (session_id, operator_id, device_name, access_digest,
            access_expires_at_micros, refresh_digest, refresh_generation,
            refresh_expires_at_micros, created_at_micros, last_used_at_micros)
     values ($4, $1, 'laptop', $2, $3, $2, 1, $3, 1, 1)`,
    [OPERATOR, Buffer.alloc(32, 9), 8_000_000_000_000_000n, SESSION],
  )
}

async function documentsOf(store: DocumentStore) {
  const page = await store.versions({
    after: '',
    snapshot: store.latestSequence,
    rowsMax: 1_000,
    textUnitsMax: EVERYTHING,
  })
  return page.rows.map(({ id, sequence, text }) => [id, sequence, text])
}

async function withDocuments<T>(
  restored: RestorePlace,
  use: (store: DocumentStore) => Promise<T>,
): Promise<T> {
  const store = await restored.openDocuments()
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

const NOTE = (number: number, sequence: number, text: string | null): BackupRecord => ({
  t: 'document',
  id: documentId('notes', number),
  createdAtMicros: String(number),
  sequence,
  text,
})
const FILE_DOCUMENT = (sequence: number, text: string | null): BackupRecord => ({
  t: 'document',
  id: documentId('fil', 4),
  createdAtMicros: '1',
  sequence,
  text,
})
const COMMIT = (sequence: number, atMicros = 0n): BackupRecord => ({
  t: 'commit',
  sequence,
  atMicros: String(atMicros),
})

describe.each<[DocumentsIn, DocumentsIn]>([
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
])('a backup of documents in %s', (from, to) => {
  beforeEach(() => begin(from))

  test.each([from, to])('it is restored to documents in %s with all that it has', async (into) => {
    const { base } = await server.base()
    const restored = await place(into)
    const result = await restored.restore(server)
    expect(result).toMatchObject({ sequence: 3, documents: 3, files: 2 })
    expect(base.toSequence).toBe(3)
    await withDocuments(restored, async (store) => {
      expect(store.latestSequence).toBe(3)
      expect(await documentsOf(store)).toEqual(await documentsOf(server.parts.store))
      expect(store.fieldShapes()).toEqual(new Map([['notes', { body: null }]]))
      expect(await store.operation(documentId('opn', 1))).toMatchObject({ commitSequence: 2 })
      const [index] = store.listIndexes()
      expect(index).toMatchObject({ fields: ['body'], defaults: ['"x"'], state: 'ready' })
      const range = await found(store.range(whole(index!.id, 3)))
      const ids = range.documents.map((row) => row.document.id)
      expect(ids).toEqual([documentId('notes', 4), documentId('notes', 1)])
    })
    const root = await openProductRoot(restored.root, realSystem())
    try {
      expect(root.descriptor).toEqual(server.parts.root.descriptor)
      expect(root.control.read(findHistory)).toBe(result.historyId)
      expect(result.historyId).not.toBe(HISTORY)
      expect(root.control.read(readDocumentsSequence)).toBe(3)
      const digest = `sha256:${sha256Hex(PACKAGE)}`
      expect(Buffer.from(await root.artifacts.get(digest, PACKAGE.length))).toEqual(PACKAGE)
      const tables = (control: typeof root.control) =>
        control.read((reader) =>
          ['releases', 'application_credentials', 'keyring_checks', 'environment'].map((table) =>
            reader.all(`select * from ${table}`),
          ),
        )
      const [before, after] = [tables(server.parts.root.control), tables(root.control)]
      const changed = { history_id: expect.any(String), documents_sequence: 3 }
      expect(after).toEqual([...before.slice(0, 3), [{ ...(before[3]![0] as object), ...changed }]])
    } finally {
      root.close()
    }
    const blobs = await restored.openBlobs()
    const content = { sha256: sha256Hex(FILE), size: FILE.length }
    expect(Buffer.from(await blobs.read(content))).toEqual(FILE)
    expect(await identityRows(restored)).toEqual(await identityRows(server.parts))
  })

  test('the digest of the documents is the same after both stores', async () => {
    await server.base()
    const first = await (await place(to)).restore(server)
    const second = await (await place(from)).restore(server)
    expect(second.merkle).toBe(first.merkle)
  })

  test('increments are applied up to a sequence or to a time', async () => {
    const { base } = await server.base()
    const time = BigInt(base.atMicros)
    await server.increment({ from: 2, to: 5, atMicros: time + 50n }, [
      COMMIT(3),
      NOTE(4, 3, '{"body":"four"}'),
      COMMIT(4, time + 40n),
      NOTE(1, 4, '{"body":"changed"}'),
      NOTE(5, 4, '{"body":"five"}'),
      COMMIT(5, time + 50n),
      NOTE(4, 5, null),
    ])
    await server.increment({ from: 5, to: 6, atMicros: time + 60n }, [
      COMMIT(6, time + 60n),
      NOTE(5, 6, '{"body":"later"}'),
    ])
    const at = async (goal: { sequence?: number; atMicros?: bigint }) => {
      const restored = await place(to)
      const whole = { sequence: goal.sequence ?? null, atMicros: goal.atMicros ?? null }
      const result = await restored.restore(server, { goal: whole })
      const rows = await withDocuments(restored, documentsOf)
      const notes = rows.filter(([id]) => String(id).startsWith('notes'))
      return [result.sequence, notes.map(([, sequence, text]) => [sequence, text])]
    }
    const fourth = [4, '{"body":"changed"}']
    const five = [4, '{"body":"five"}']
    const at4 = [4, [fourth, [3, '{"body":"four"}'], five]]
    expect(await at({ sequence: 4 })).toEqual(at4)
    expect(await at({ atMicros: time + 49n })).toEqual(at4)
    expect(await at({ sequence: 5 })).toEqual([5, [fourth, five]])
    expect(await at({})).toEqual([6, [fourth, [6, '{"body":"later"}']]])
  })
})

describe('a restore', () => {
  beforeEach(() => begin('sqlite'))

  const operator = (name: string): BackupRecord => ({
    t: 'identity',
    table: 'service_operators',
    row: {
      operator_id: OPERATOR,
      operator_name: name,
      created_at_micros: '5',
      disabled_at_micros: null,
      authorization_revision: '1',
    },
  })
  const variable = (name: string, value: string): BackupRecord => ({
    t: 'control',
    table: 'configuration',
    row: {
      name: `t:${name}`,
      kind: 't:variable',
      value: `t:${value}`,
      sealed: null,
      key_id: null,
      revision: 'i:1',
      created_at: 'i:1',
      updated_at: 'i:1',
    },
  })

  test('the newest rows of both databases are restored, and deleted ones are not', async () => {
    const stale = { from: 3, to: 3 }
    await server.increment(stale, [variable('old', 'before the base'), operator('before')])
    await server.base()
    await server.increment(stale, [variable('kept', 'first'), variable('gone', 'x')])
    await server.increment(stale, [
      variable('kept', 'second'),
      { t: 'controlDelete', table: 'configuration', row: { name: 't:gone' } },
      operator('renamed'),
      { t: 'controlTable', table: 'application_credentials' },
      { t: 'identityTable', table: 'service_operator_sessions' },
    ])
    const restored = await place('sqlite')
    const { live } = await restored.restore(server)
    const root = await openProductRoot(restored.root, realSystem())
    try {
      const rows = root.control.read((reader) =>
        reader.all('select name, value from configuration order by name'),
      )
      expect(rows).toEqual([{ name: 'kept', value: 'second' }])
    } finally {
      root.close()
    }
    const names = await restored.identity.rows('select operator_name from service_operators')
    expect(names).toEqual([{ operator_name: 'renamed' }])
    expect(live).toEqual({ sessions: [], invitations: [], credentials: [], storageKeys: [] })
  })

  test('what works is listed, and is revoked only where that is asked for', async () => {
    await server.base()
    const sessions = [{ sessionId: SESSION, operatorId: OPERATOR, deviceName: 'laptop' }]
    const live = {
      sessions,
      invitations: [],
      credentials: [{ id: 'crd_1', name: 'first' }],
      storageKeys: [],
    }
    const kept = await place('sqlite')
    expect((await kept.restore(server)).live).toEqual(live)
    const revoked = await place('sqlite')
    expect((await revoked.restore(server, { revokesCredentials: true })).live).toEqual(live)
    for (const [restored, state] of [
      [kept, ['active', null]],
      [revoked, ['revoked', 'requested']],
    ] as const) {
      const root = await openProductRoot(restored.root, realSystem())
      const key = root.control.read((reader) =>
        reader.get<{ state: string }>('select state from application_credentials'),
      )
      root.close()
      const [session] = await restored.identity.rows(
        'select revocation from service_operator_sessions',
      )
      expect([key!.state, session!.revocation]).toEqual(state)
    }
    const audit = await kept.identity.rows('select operation, subject from service_platform_audit')
    expect(audit).toEqual([
      { operation: 'installation.restore', subject: expect.stringMatching(/^hst_/) },
    ])
  })

  test('a catch-up is restored as a whole, and no state inside it', async () => {
    await server.base()
    const catchup = [COMMIT(9), NOTE(1, 8, '{"body":"eight"}'), NOTE(4, 6, null)]
    await server.increment({ kind: 'catchup', from: 3, to: 9 }, catchup)
    const restored = await place('postgres')
    const inside = restored.restore(server, { goal: { sequence: 7, atMicros: null } })
    await expect(inside).rejects.toMatchObject({ code: 'RESTORE_POINT_NOT_FOUND' })
    expect((await restored.restore(server)).sequence).toBe(9)
    const rows = await withDocuments(restored, documentsOf)
    expect(rows.slice(1)).toEqual([[documentId('notes', 1), 8, '{"body":"eight"}']])
    const before = await place('sqlite')
    const goal = { sequence: 3, atMicros: null }
    expect((await before.restore(server, { goal })).sequence).toBe(3)
  })

  test('a state before the oldest base or behind a gap is not found', async () => {
    await server.base()
    await server.increment({ from: 5, to: 6 }, [COMMIT(6), NOTE(1, 6, '{}')])
    const restored = await place('sqlite')
    for (const sequence of [2, 4, 6, 7]) {
      const goal = { sequence, atMicros: null }
      const restoring = restored.restore(server, { goal })
      await expect(restoring).rejects.toMatchObject({ code: 'RESTORE_POINT_NOT_FOUND' })
    }
    const early = restored.restore(server, { goal: { sequence: null, atMicros: 1n } })
    await expect(early).rejects.toMatchObject({ code: 'RESTORE_POINT_NOT_FOUND' })
    expect((await restored.restore(server)).sequence).toBe(3)
  })

  test('the bytes of a file are restored where a later segment names them', async () => {
    const { base } = await server.base()
    const time = BigInt(base.atMicros) + 10n
    const bytes = Buffer.from('bytes that were slow')
    const text = await server.storeFile(bytes)
    const file: BackupRecord = { ...NOTE(7, 4, text), id: documentId('fil', 7) } as BackupRecord
    const first = { from: 3, to: 4, files: 3, atMicros: time }
    await server.increment(first, [COMMIT(4, time), file])
    const blob = await server.storeBlob(bytes)
    const later = [blob, variable('later', 'x'), COMMIT(5, time + 1n), NOTE(1, 5, '{}')]
    await server.increment({ from: 4, to: 5, atMicros: time + 1n }, later)
    const content = { sha256: sha256Hex(bytes), size: bytes.length }
    for (const goal of [
      { sequence: 4, atMicros: null },
      { sequence: null, atMicros: time },
    ]) {
      const restored = await place('sqlite')
      expect(await restored.restore(server, { goal })).toMatchObject({ sequence: 4, files: 3 })
      const blobs = await restored.openBlobs()
      expect(Buffer.from(await blobs.read(content))).toEqual(bytes)
      const root = await openProductRoot(restored.root, realSystem())
      const variables = root.control.read((reader) => reader.all('select name from configuration'))
      root.close()
      expect(variables).toEqual([])
    }
  })

  test('files whose bytes the backup lacks are counted', async () => {
    await begin('sqlite')
    await server.base()
    const whole = await (await place('sqlite')).restore(server)
    expect(whole.missingFiles).toBe(0)
    const { text } = write('fil', 4, await server.storeFile(Buffer.from('never in the target')))
    await server.increment({ from: whole.sequence, to: whole.sequence + 1 }, [
      { t: 'commit', sequence: whole.sequence + 1, atMicros: '9' },
      FILE_DOCUMENT(whole.sequence + 1, text),
    ])
    expect((await (await place('sqlite')).restore(server)).missingFiles).toBe(1)
    // One that is deleted later needs no bytes.
    await server.increment({ from: whole.sequence + 1, to: whole.sequence + 2 }, [
      { t: 'commit', sequence: whole.sequence + 2, atMicros: '10' },
      FILE_DOCUMENT(whole.sequence + 2, null),
    ])
    expect((await (await place('sqlite')).restore(server)).missingFiles).toBe(0)
  })

  test('a document of a file that cannot be read is rejected with its segment', async () => {
    await begin('sqlite')
    await server.base()
    await server.increment({ from: 3, to: 4 }, [COMMIT(4), FILE_DOCUMENT(4, '{"size":"x"}')])
    const restored = await place('sqlite')
    await expect(restored.restore(server)).rejects.toMatchObject({
      code: 'BACKUP_CORRUPT',
      detail: expect.stringMatching(/\d{12}.*the document of a file/),
    })
    expect(existsSync(restored.root)).toBe(false)
  })

  test('a place that is not empty is rejected, and stays as it is', async () => {
    await server.base()
    const used = await place('postgres')
    mkdirSync(used.root)
    writeFileSync(join(used.root, 'mine'), 'kept')
    await expect(used.restore(server)).rejects.toMatchObject({ code: 'RESTORE_NOT_EMPTY' })
    expect(readdirSync(used.root)).toEqual(['mine'])
    const restored = await place('postgres')
    await restored.restore(server)
    const documents = await withDocuments(restored, documentsOf)
    const rows = await identityRows(restored)
    const again = await place('postgres')
    for (const option of [{ identity: restored.identity }, { documents: restored.documents }]) {
      const restoring = again.restore(server, {}, option)
      await expect(restoring).rejects.toMatchObject({ code: 'RESTORE_NOT_EMPTY' })
      expect(existsSync(again.root)).toBe(false)
    }
    expect(await identityRows(restored)).toEqual(rows)
    expect(await withDocuments(restored, documentsOf)).toEqual(documents)
    expect((await again.restore(server)).sequence).toBe(3)
  })

  test.each(['sqlite', 'postgres'] as const)(
    'a restore to %s that fails at its end leaves nothing, so it can be repeated',
    async (documents) => {
      await server.base()
      const grant: BackupRecord = {
        t: 'identity',
        table: 'service_operator_identities',
        row: {
          provider_id: 'x',
          subject_digest: `\\x${'00'.repeat(32)}`,
          operator_id: 'opr_00000000000000000000000009',
          linked_at_micros: '1',
        },
      }
      // A row that refers to no operator is found by the last database alone.
      await server.increment({ from: 3, to: 3 }, [grant])
      const restored = await place(documents)
      const failing = restored.restore(server)
      await expect(failing).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
      expect(existsSync(restored.root)).toBe(false)
      await server.increment({ from: 3, to: 3 }, [
        { t: 'identityTable', table: 'service_operator_identities' },
      ])
      expect((await restored.restore(server)).sequence).toBe(3)
    },
  )

  test('a backup of a newer version is rejected before anything is written', async () => {
    await server.base()
    await server.increment({ from: 3, to: 3 }, [
      {
        t: 'control',
        table: 'control_migrations',
        row: { version: 'i:999', name: 't:later', checksum: 't:x', applied_at: 'i:1' },
      },
    ])
    const restored = await place('sqlite')
    const restoring = restored.restore(server)
    await expect(restoring).rejects.toMatchObject({ code: 'BACKUP_VERSION_UNKNOWN' })
    expect(existsSync(restored.root)).toBe(false)
  })

  test('the primary keys of the tables of identity are those of the schema', async () => {
    const rows = await server.parts.identity.rows(
      `select r.relname as table, array_agg(a.attname::text order by k.place) as columns
         from pg_index i
         join pg_class r on r.oid = i.indrelid
        cross join lateral unnest(i.indkey) with ordinality k (number, place)
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
        where i.indisprimary and r.relnamespace = current_schema()::regnamespace
        group by r.relname`,
    )
    expect(Object.fromEntries(rows.map((row) => [row.table, row.columns]))).toEqual(IDENTITY_KEYS)
  })
})

async function identityRows(of: Pick<RestorePlace, 'identity'>): Promise<unknown[]> {
  const rows = []
  for await (const { table, row } of readIdentityRows(of.identity)) {
    const { applied_at_micros: _, ...rest } = row
    if (row.operation !== 'installation.restore') rows.push([table, rest])
  }
  return rows
}
