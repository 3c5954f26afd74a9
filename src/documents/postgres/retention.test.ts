/**
 * @module-tag slow
 */
import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../testing/databases/postgres.ts'
import { documentId, pruneAll } from '../../../testing/documents/store-fixtures.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../testing/documents/stores.ts'
import { encodeTrailer } from '../key-encoding.ts'

const DOCUMENTS = 200
const ROUNDS = 20
const text = JSON.stringify({ body: 'x'.repeat(1_000) })

test('the room of pruned rows is used again, and a free end is returned', async () => {
  const database = await freshDatabase(DOCUMENT_TEMPLATE)
  onTestFinished(() => database.drop())
  const outside = new Client({ connectionString: database.url })
  await outside.connect()
  onTestFinished(() => outside.end())
  const store = await openDocuments(database.url)
  onTestFinished(() => store.close())
  const [index] = await store.ensureIndexes([{ table: 'notes', fields: ['at'] }])
  await store.buildIndex(index!.id)

  let sequence = 0
  const keyOf = (id: string, at: number) =>
    `\x08${at}\0\x01${encodeTrailer({ createdAtMicros: 0n, id })}`
  async function updateAll(isDeletion = false): Promise<void> {
    sequence += 1
    const writes = Array.from({ length: DOCUMENTS }, (_, number) => {
      const id = documentId('notes', number)
      const entries = [
        ...(sequence > 1 ? [{ index: index!.id, key: keyOf(id, sequence - 1), live: false }] : []),
        ...(isDeletion ? [] : [{ index: index!.id, key: keyOf(id, sequence), live: true }]),
      ]
      return { id, createdAtMicros: 0n, text: isDeletion ? null : text, entries }
    })
    const atMicros = BigInt(sequence) * 60_000_000n
    await store.commit({ transactions: [{ sequence, atMicros, writes }] })
  }
  // The server's autovacuum does it in the background.
  const vacuumed = async () => {
    await outside.query('vacuum svc_documents.documents, svc_documents.index_entries')
    const { rows } = await outside.query<{ documents: string; entries: string }>(
      `select pg_relation_size('svc_documents.documents') as documents,
              pg_relation_size('svc_documents.index_entries') as entries`,
    )
    return { documents: Number(rows[0]!.documents), entries: Number(rows[0]!.entries) }
  }

  for (let round = 0; round < ROUNDS; round++) await updateAll()
  const full = await vacuumed()
  const request = { oldestSnapshot: sequence, operationsBeforeMicros: 0n, rowsMax: 500 }
  expect((await store.prune({ ...request, beforeMicros: 0n })).removed).toBe(0)
  // Versions and entries of all rounds but the last.
  expect(await pruneAll(store, { rowsMax: 500 })).toBe(2 * DOCUMENTS * (ROUNDS - 1))
  await vacuumed()

  for (let round = 1; round < ROUNDS; round++) await updateAll()
  const again = await vacuumed()
  expect(again.documents).toBeLessThanOrEqual(full.documents * 1.1)
  expect(again.entries).toBeLessThanOrEqual(full.entries * 1.5)

  await updateAll(true)
  // A deletion makes the last version, its tombstone and the last entry garbage too.
  await pruneAll(store, { rowsMax: 500 })
  expect(await vacuumed()).toEqual({ documents: 0, entries: 0 })
})
