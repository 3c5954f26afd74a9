import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { documentId, operationRecord } from '../../../testing/documents/store-fixtures.ts'
import { openDocuments } from '../../../testing/documents/stores.ts'
import { IDENTITY_TEMPLATE } from '../../../testing/identity.ts'
import { ENVIRONMENT_ID, makeRoot } from '../../../testing/product-roots.ts'
import { S3Server } from '../../../testing/servers/s3-server.ts'
import { Database } from '../../database/database.ts'
import { IDENTITY_TABLES } from '../../database/identity/all-rows.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore, DocumentWrite } from '../../documents/store.ts'
import { SnapshotHolds } from '../../engine/commits/snapshot-holds.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import { FileBlobs } from '../../storage/blobs/file-blobs.ts'
import { S3Blobs } from '../../storage/blobs/s3-blobs.ts'
import { CONTROL_COPY_FILE, openProductRoot, type ProductRoot } from '../../storage/root.ts'
import { sha256Hex } from '../../system/digests.ts'
import { realSystem } from '../../system/system.ts'
import type { HistoryId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import { encodeStored } from '../../value/stored.ts'
import type { BackupRecord, RecordOf } from '../../wire/files/backups.ts'
import { Opener, recipientOf } from '../format/age-files.ts'
import { readBase, readBlob, readSegment, verifyBackup } from '../format/backup-reader.ts'
import { blobPath, directoryOf, segmentBounds, selectBackup } from '../format/chain.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { type BackedUpServer, makeBase } from './base-backup.ts'
import type { BackedUpPeppers } from './base-records.ts'

const HISTORY = 'hst_00000000000000000000000001' as HistoryId
const ADDRESS = { environmentId: ENVIRONMENT_ID, historyId: HISTORY }
const FILE = Buffer.from('bytes of a stored file')
const PACKAGE = Buffer.from('the artifact of a Release')

interface Bench {
  readonly store: DocumentStore
  close(): Promise<void>
}

async function sqliteBench(directory: string): Promise<Bench> {
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  return { store, close: () => store.close() }
}

async function postgresBench(): Promise<Bench> {
  const database = await freshDatabase()
  const store = await openDocuments(database.url, { environmentId: ENVIRONMENT_ID })
  const close = async () => {
    await store.close()
    await database.drop()
  }
  return { store, close }
}

let directory: string
let root: ProductRoot
let identityDatabase: TestDatabase
let identity: Database
let blobs: BlobStore
let target: DirectoryTarget
let secret: string
let holds: SnapshotHolds
let filesAreHeld: boolean

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'base-'))
  root = await openProductRoot(makeRoot(), realSystem())
  identityDatabase = await freshDatabase(IDENTITY_TEMPLATE)
  identity = new Database({ url: new Secret(identityDatabase.url) })
  blobs = await FileBlobs.open({ directory: join(root.path, 'files'), freeFloorBytes: 0 })
  target = new DirectoryTarget(join(directory, 'target'))
  await Bun.write(join(directory, 'target/.keep'), '')
  secret = await generateX25519Identity()
  holds = new SnapshotHolds(realSystem())
  filesAreHeld = false
})
afterEach(async () => {
  await identity.close()
  await identityDatabase.drop()
  root.close()
  rmSync(root.path, { recursive: true })
  rmSync(directory, { recursive: true })
})

function serverOf(store: BackedUpServer['store'], sequence: number): BackedUpServer {
  return {
    system: realSystem(),
    store,
    holdSnapshot: () => holds.hold(sequence),
    holdFiles: () => {
      filesAreHeld = true
      return () => {
        filesAreHeld = false
      }
    },
    root,
    blobs,
    identity,
  }
}

async function base(store: BackedUpServer['store'], sequence: number) {
  const recipients = [await recipientOf(secret)]
  return makeBase({ server: serverOf(store, sequence), target, recipients, historyId: HISTORY })
}

async function records(): Promise<BackupRecord[]> {
  const found: BackupRecord[] = []
  const backup = await selectBackup(target, ADDRESS)
  for await (const { record } of readBase(source(), backup)) found.push(record)
  return found
}

const source = () => ({ target, opener: new Opener([secret]) })

const write = (table: string, number: number, text: string | null): DocumentWrite => ({
  id: documentId(table, number),
  createdAtMicros: BigInt(number),
  text,
  entries: [],
})

const commit = (store: DocumentStore, sequence: number, ...writes: DocumentWrite[]) =>
  store.commit({ transactions: [{ sequence, atMicros: 0n, writes }] })

/** Stores the bytes of a file. Returns the text of its document. */
async function storedFile(bytes: Uint8Array): Promise<string> {
  const staged = await blobs.stage(0)
  await staged.write(bytes)
  const { sha256, size } = await staged.finish()
  await staged.commit()
  const fields = new Map<string, string | bigint>([
    ['sha256', sha256],
    ['size', BigInt(size)],
  ])
  return encodeStored(fields)
}

/** Writes three documents, one of them a file with its bytes, and a Release with its artifacts. */
async function fill(store: DocumentStore): Promise<void> {
  await store.setFieldShapes(new Map([['notes', { body: null }]]))
  await store.ensureIndexes([{ table: 'notes', fields: ['body'], defaults: ['"x"'] }])
  await commit(store, 1, write('notes', 2, '{"body":"two"}'), write('notes', 1, '{"body":"é"}'))
  const operation = operationRecord(1, { commitSequence: 2 })
  const writes = [write('fil', 3, await storedFile(FILE))]
  await store.commit({ transactions: [{ sequence: 2, atMicros: 0n, writes, operation }] })
  await root.artifacts.put(`sha256:${sha256Hex(PACKAGE)}`, PACKAGE)
  root.control.transaction((tx) => {
    const digest = `sha256:${sha256Hex(PACKAGE)}`
    tx.run(
      `insert into releases (release_id, workspace, state, package_digest, manifest_digest,
              manifest_bytes, artifact_digest, artifact_bytes, created_at)
       values ('rel_1', 'app', 'published', 'sha256:0', ?1, ?2, ?1, ?2, ?3)`,
      digest,
      PACKAGE.length,
      // Beyond the integers of a double.
      2n ** 62n + 1n,
    )
  })
}

describe.each([
  ['SQLite', sqliteBench],
  ['PostgreSQL', postgresBench],
])('the base of a server with documents in %s', (_, make) => {
  let store: DocumentStore
  let bench: Bench
  beforeEach(async () => {
    bench = await make(directory)
    store = bench.store
    await fill(store)
  })
  afterEach(() => bench.close())

  test('a base has what its snapshot sees, although commits go on', {
    tags: ['slow'],
  }, async () => {
    let pages = 0
    const busy = {
      schema: () => store.schema(),
      operations: store.operations.bind(store),
      versions: async (request: Parameters<DocumentStore['versions']>[0]) => {
        pages += 1
        const sequence = store.latestSequence + 1
        const operation = operationRecord(sequence, { commitSequence: sequence })
        const writes = [write('notes', 1, '{"body":"later"}'), write('notes', 2, null)]
        await store.commit({ transactions: [{ sequence, atMicros: 0n, writes, operation }] })
        expect(holds.oldest()).toBe(2)
        expect(filesAreHeld).toBe(true)
        return store.versions(request)
      },
    }
    const result = await base(busy, 2)
    expect(pages).toBeGreaterThan(0)
    expect(holds.oldest()).toBe(Number.POSITIVE_INFINITY)
    expect(filesAreHeld).toBe(false)
    expect(result.base).toMatchObject({ kind: 'base', toSequence: 2 })
    const found = await records()
    const documents = found.filter((record) => record.t === 'document')
    expect(documents.map(({ id, sequence, text }) => [id, sequence, text])).toEqual([
      [documentId('fil', 3), 2, expect.stringContaining(sha256Hex(FILE))],
      [documentId('notes', 1), 1, '{"body":"é"}'],
      [documentId('notes', 2), 1, '{"body":"two"}'],
    ])
    const operations = found.filter((record) => record.t === 'operation')
    expect(operations).toEqual([
      {
        t: 'operation',
        id: documentId('opn', 1),
        fingerprint: Buffer.of(1, 2, 1).toString('base64'),
        commitSequence: 2,
        releaseId: documentId('rel', 1),
        function: 'messages.send',
        result: '{"type":"null"}',
        attempts: 1,
        createdAtMicros: '1000',
      },
    ])
    expect(found.filter((record) => record.t === 'shape' || record.t === 'index')).toEqual([
      { t: 'shape', table: 'notes', shape: '{"body":null}' },
      { t: 'index', table: 'notes', fields: ['body'], defaults: ['"x"'] },
    ])
  })

  test('several bases share the bytes of files and artifacts', { tags: ['slow'] }, async () => {
    await base(store, 2)
    const names = async () => {
      const blobs = `${directoryOf(ADDRESS)}/blobs`
      const shards = await target.names(blobs)
      return (await Promise.all(shards.map((shard) => target.names(`${blobs}/${shard}`)))).flat()
    }
    const first = await names()
    expect(first).toHaveLength(2)
    expect(first.join()).not.toContain(sha256Hex(FILE))
    await base(store, 2)
    expect(await names()).toEqual(first)
    const backup = await selectBackup(target, ADDRESS)
    expect((await verifyBackup(source(), backup)).blobBytes).toBe(FILE.length + 2 * PACKAGE.length)
    const blob = (await records()).find((record) => record.t === 'blob')!
    const parts = []
    for await (const part of readBlob(source(), ADDRESS, blob)) parts.push(part)
    expect(Buffer.concat(parts)).toEqual(FILE)
    // A part of the bytes, as a lost connection may leave.
    await target.write(blobPath(ADDRESS, blob.name), [Buffer.from('age-encryption.org/v1')])
    await base(store, 2)
    expect((await verifyBackup(source(), await selectBackup(target, ADDRESS))).counts.blob).toBe(1)
    secret = await generateX25519Identity()
    await base(store, 2)
    expect((await names()).length).toBe(4)
    expect((await verifyBackup(source(), await selectBackup(target, ADDRESS))).counts.blob).toBe(1)
  })

  test('bytes that are damaged are left out and reported', { tags: ['slow'] }, async () => {
    const path = join(root.path, 'files/sha256', sha256Hex(FILE).slice(0, 2))
    await Bun.write(join(path, sha256Hex(FILE).slice(2)), 'Bytes of a stored file')
    const { damaged } = await base(store, 2)
    expect(damaged).toEqual([sha256Hex(FILE)])
    const verified = await verifyBackup(source(), await selectBackup(target, ADDRESS))
    expect(verified.counts).toMatchObject({ document: 3, artifact: 2 })
    expect(verified.counts.blob).toBeUndefined()
  })

  test('a base has the control database, the keyring and the identity database', async () => {
    await identity.rows(
      `insert into service_operators (operator_id, operator_name, created_at_micros)
       values ('opr_1', $1, 5)`,
      ['Zoë "quoted"'],
    )
    await identity.rows(
      `insert into service_operator_grants (operator_id, scope_kind, capabilities,
              created_at_micros, source)
       values ('opr_1', 'installation', '{a,"b c"}', 5, 'legacy')`,
      [],
    )
    await base(store, 2)
    const found = await records()
    const release = found.find((record) => record.t === 'control' && record.table === 'releases')
    expect(release).toMatchObject({
      row: { release_id: 't:rel_1', created_at: `i:${2n ** 62n + 1n}`, checks: null },
    })
    const check = found.find((one) => one.t === 'control' && one.table === 'keyring_checks')
    const derived = Buffer.from(root.keyring.derive('k1', 'keyring-check')).toString('base64')
    expect(check).toMatchObject({ row: { key_id: 't:k1', check_digest: `b:${derived}` } })
    expect(found.find((record) => record.t === 'environment')).toEqual({
      t: 'environment',
      descriptor: readFileSync(join(root.path, 'service.json'), 'utf8'),
      keyring: readFileSync(join(root.path, 'keyring.json'), 'utf8'),
    })
    const rows = found.filter((record) => record.t === 'identity')
    const tables = rows.map(({ table }) => table)
    expect(tables.indexOf('service_operators')).toBeLessThan(
      tables.indexOf('service_operator_grants'),
    )
    expect(rows.find(({ table }) => table === 'service_operator_grants')!.row).toMatchObject({
      capabilities: '{a,"b c"}',
      project_id: null,
      created_at_micros: '5',
    })
    expect(rows.find(({ table }) => table === 'service_operators')!.row.operator_name).toBe(
      'Zoë "quoted"',
    )
    expect(readdirSync(root.path)).not.toContain(CONTROL_COPY_FILE)
  })
})

test('files in an S3-compatible store are in a base, short ones and long ones', {
  tags: ['slow'],
}, async () => {
  const s3 = new S3Server()
  const keys = { bucket: 'files', region: 'auto', accessKeyId: 'a', secretAccessKey: 's' }
  blobs = await S3Blobs.open({
    address: { endpoint: s3.endpoint, ...keys },
    environmentId: ENVIRONMENT_ID,
    stagingDirectory: join(directory, 'staging'),
    freeFloorBytes: 0,
  })
  const bench = await sqliteBench(directory)
  try {
    const contents = [Buffer.from('short'), Buffer.alloc(3 * 1024 * 1024, 'long')]
    for (const [at, bytes] of contents.entries()) {
      await commit(bench.store, at + 1, write('fil', at, await storedFile(bytes)))
    }
    await base(bench.store, 2)
    const verified = await verifyBackup(source(), await selectBackup(target, ADDRESS))
    expect(verified.counts.blob).toBe(2)
    expect(verified.blobBytes).toBe(contents[0]!.length + contents[1]!.length)
    s3.failure = 'error'
    secret = await generateX25519Identity()
    await expect(base(bench.store, 2)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  } finally {
    await bench.close()
    await s3.stop()
  }
})

test('both stores have the same documents and the same digest of them', {
  tags: ['slow'],
}, async () => {
  const ends = []
  for (const make of [sqliteBench, postgresBench]) {
    const bench = await make(directory)
    await commit(bench.store, 1, write('notes', 2, '{"b":"é"}'), write('messages', 9, '{}'))
    await commit(bench.store, 2, write('notesLater', 1, '{"b":[1]}'), write('messages', 9, null))
    await base(bench.store, 2)
    await bench.close()
    const backup = await selectBackup(target, ADDRESS)
    const lines: unknown[] = []
    for await (const { record } of readBase(source(), backup)) {
      if (record.t === 'document') lines.push(record)
    }
    ends.push(lines)
  }
  expect(ends[0]).toHaveLength(2)
  expect(ends[0]).toEqual(ends[1])
})

test('the segments that say what a base has are written while no increment is', {
  tags: ['slow'],
}, async () => {
  const bench = await sqliteBench(directory)
  await commit(bench.store, 1, write('notes', 1, '{"a":1}'))
  const recipients = [await recipientOf(secret)]
  const newest = async () => (await segmentBounds(target, ADDRESS))?.newest ?? 0
  const ends: number[] = []
  await makeBase({
    server: serverOf(bench.store, 1),
    target,
    recipients,
    historyId: HISTORY,
    exclusive: async (step) => {
      const result = await step()
      ends.push(await newest())
      return result
    },
  })
  const found = new Map<string, number>()
  const { segments } = await selectBackup(target, ADDRESS)
  for (const segment of segments) {
    for await (const { record } of readSegment(source(), segment)) {
      if (!found.has(record.t)) found.set(record.t, segment.number)
    }
  }
  expect([found.get('environment'), found.get('identity')]).toEqual(ends.slice(1))
  await bench.close()
})

test('a base has the peppers only if the server gives them', { tags: ['slow'] }, async () => {
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  try {
    const peppersOf = async (peppers: BackedUpPeppers | null) => {
      const server = { ...serverOf(store, 0), peppers }
      const recipients = [await recipientOf(secret)]
      await makeBase({ server, target, recipients, historyId: HISTORY })
      const found = (await records()).find((record) => record.t === 'environment')
      const { pepper, subjectPeppers } = found as RecordOf<'environment'>
      return { pepper, subjectPeppers }
    }
    expect(await peppersOf(null)).toEqual({})
    const subjects = [{ providerId: 'people', subjectPepper: new Secret('canary-subject') }]
    expect(await peppersOf({ identity: new Secret('canary-pepper'), subjects })).toEqual({
      pepper: 'canary-pepper',
      subjectPeppers: { people: 'canary-subject' },
    })
  } finally {
    await store.close()
  }
})

test('the tables of the identity database are in the order of their references', async () => {
  const rows = await identity.rows(
    `select table_name from information_schema.tables
      where table_schema = current_schema() order by table_name`,
    [],
  )
  expect(rows.map((row) => row.table_name)).toEqual([...IDENTITY_TABLES].sort())
  const references = await identity.rows(
    `select conrelid::regclass::text as child, confrelid::regclass::text as parent
       from pg_constraint where contype = 'f'`,
    [],
  )
  const at = (name: unknown) => IDENTITY_TABLES.indexOf(name as never)
  for (const { child, parent } of references) expect(at(child)).toBeGreaterThan(at(parent))
})
