/** Reads of a second process, which another one tells of its commits. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import {
  BY_CHANNEL,
  builtIndexes,
  CREATION,
  documentId,
  fieldsOf,
  found,
  Model,
  whole,
} from '../../testing/documents/store-fixtures.ts'
import { openDocuments } from '../../testing/documents/stores.ts'
import { Secret } from '../value/secret.ts'
import type { FollowedDocuments } from './followed-documents.ts'
import { followPostgresDocuments } from './postgres/followed-store.ts'
import { followSqliteDocuments } from './sqlite/followed-store.ts'
import { openSqliteDocuments } from './sqlite/stores.ts'
import type { DocumentStore } from './store.ts'

interface Opened {
  readonly store: DocumentStore
  follow(): FollowedDocuments
  dispose(): Promise<void>
}

const STORES = { SQLite: sqlite, PostgreSQL: postgres }

async function sqlite(): Promise<Opened> {
  const directory = mkdtempSync(join(tmpdir(), 'followed-'))
  const path = join(directory, 'documents.db')
  const store = await openSqliteDocuments(path, { mayBeNew: true, isShared: true })
  return {
    store,
    follow: () =>
      followSqliteDocuments(path, {
        latestSequence: store.latestSequence,
        schema: store.schema(),
      }),
    dispose: async () => {
      await store.close()
      rmSync(directory, { recursive: true })
    },
  }
}

async function postgres(): Promise<Opened> {
  const database = await freshDatabase()
  const store = await openDocuments(database.url)
  return {
    store,
    follow: () =>
      followPostgresDocuments({
        url: new Secret(database.url),
        connectionsMax: 2,
        latestSequence: store.latestSequence,
        schema: store.schema(),
        onConnectionLost: () => undefined,
      }),
    dispose: async () => {
      await store.close()
      await database.drop()
    },
  }
}

describe.each(Object.entries(STORES))('followed documents in %s', (_, open) => {
  let opened: Opened
  let followed: FollowedDocuments
  let model: Model

  beforeEach(async () => {
    opened = await open()
    model = new Model()
    await builtIndexes(opened.store, [CREATION, BY_CHANNEL])
    followed = opened.follow()
  })
  afterEach(async () => {
    await followed.close()
    await opened.dispose()
  })

  /** Commits one document without telling of it. Returns its ID. */
  async function commit(number: number, channel: string | null): Promise<string> {
    const { store } = opened
    const fields = channel === null ? null : fieldsOf({ channel })
    const document = { table: 'messages', number }
    await model.commit(store, [model.write(store.listIndexes(), document, fields)])
    return documentId('messages', number)
  }

  const index = () =>
    followed.listIndexes().find(({ fields }) => fields.length === BY_CHANNEL.fields.length)!

  async function expectState(snapshot: number): Promise<void> {
    for (const id of model.documents.keys()) {
      expect(await followed.read(id, snapshot)).toEqual(model.read(id, snapshot))
    }
    const { documents } = await found(followed.range(whole(index().id, snapshot)))
    expect(documents).toEqual(model.range(BY_CHANNEL, snapshot))
  }

  test('trimmed documents are read again at every snapshot', async () => {
    for (const channel of ['first', 'second']) {
      followed.followCommit(followed.latestSequence + 1, [await commit(1, channel)])
      for (let read = 0; read < 2; read++) await expectState(followed.latestSequence)
    }
    followed.trim()
    await expectState(1)
    await expectState(2)
  })

  test('a read at a snapshot never sees a version that is newer, announced or not', async () => {
    const id = await commit(1, 'first')
    followed.followCommit(1, [id])
    // Read twice, so that the version is cached.
    for (let i = 0; i < 3; i++) await expectState(1)
    await commit(1, 'second')
    await commit(2, 'other')
    // They are durable, and this process was not told.
    for (let i = 0; i < 3; i++) await expectState(1)
    followed.followCommit(2, [id])
    for (let i = 0; i < 3; i++) await expectState(2)
    await expectState(1)
    followed.followCommit(3, [documentId('messages', 2)])
    for (const snapshot of [3, 2, 1]) await expectState(snapshot)
    await commit(1, null)
    await expectState(3)
    followed.followCommit(4, [id])
    for (const snapshot of [4, 3, 1]) await expectState(snapshot)
  })

  test('reads of one turn see a commit that is announced between them', async () => {
    const id = await commit(1, 'first')
    followed.followCommit(1, [id])
    const before = followed.read(id, 1)
    // In the same turn where reads need no connection: a transaction of reads is open.
    await commit(1, 'second')
    const still = followed.read(id, 1)
    followed.followCommit(2, [id])
    const after = followed.read(id, 2)
    expect(await Promise.all([before, still, after])).toEqual([
      model.read(id, 1),
      model.read(id, 1),
      model.read(id, 2),
    ])
  })

  test('an index is used once the other process has announced that it is built', async () => {
    const definition = { table: 'messages', fields: ['author'] }
    await expect(followed.ensureIndexes([definition])).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    const changes: number[] = []
    followed.onSchemaChange(() => changes.push(followed.listIndexes().length))
    await builtIndexes(opened.store, [definition])
    followed.followSchema(opened.store.schema())
    expect(await followed.ensureIndexes([definition])).toMatchObject([{ state: 'ready' }])
    expect(changes).toEqual([3])
    const [dropped] = await followed.ensureIndexes([definition])
    await opened.store.dropIndex(dropped!.id)
    followed.followSchema(opened.store.schema())
    await expect(followed.ensureIndexes([definition])).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
  })

  test('a process that only reads changes nothing', async () => {
    const { store } = opened
    const write = model.write(
      store.listIndexes(),
      { table: 'messages', number: 1 },
      fieldsOf({ channel: 'a' }),
    )
    const transactions = [{ sequence: 1, atMicros: 0n, writes: [write] }]
    await expect((followed as DocumentStore).commit({ transactions })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    expect(store.latestSequence).toBe(0)
  })
})
