/**
 * @module-tag slow
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { documentId, pruneAll } from '../../../testing/documents/store-fixtures.ts'
import type { DocumentStore } from '../store.ts'
import { openSqliteDocuments } from './stores.ts'

const MIB = 1024 * 1024
const MINUTE_MICROS = 60_000_000n
const DOCUMENTS = 100
const ROUNDS = 60
const text = JSON.stringify({ body: 'x'.repeat(4_000) })

function bytesOf(path: string): number {
  return statSync(path).size
}

async function updateAll(store: DocumentStore, sequence: number, atMicros: bigint): Promise<void> {
  const writes = Array.from({ length: DOCUMENTS }, (_, number) => {
    return { id: documentId('notes', number), createdAtMicros: 0n, text, entries: [] }
  })
  await store.commit({ transactions: [{ sequence, atMicros, writes }] })
}

test('pages of pruned versions return to the file system, some in each step', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'documents-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'documents.db')
  let store = await openSqliteDocuments(path)
  for (let round = 1; round <= ROUNDS; round++) {
    await updateAll(store, round, BigInt(round) * MINUTE_MICROS)
  }
  await store.close()
  const full = bytesOf(path)
  expect(full).toBeGreaterThan(20 * MIB)

  store = await openSqliteDocuments(path)
  const request = { oldestSnapshot: ROUNDS, operationsBeforeMicros: 0n, rowsMax: 500 }
  // At this time nothing was replaced long enough ago.
  const early = { ...request, beforeMicros: 0n }
  expect(await store.prune(early)).toEqual({ removed: 0, more: false })
  let before = full
  let largest = 0
  let removed = 0
  for (let more = true; more; ) {
    const step = await store.prune({ ...request, beforeMicros: 100n * MINUTE_MICROS })
    more = step.more
    removed += step.removed
    await store.close()
    largest = Math.max(largest, before - bytesOf(path))
    before = bytesOf(path)
    store = await openSqliteDocuments(path)
  }
  expect(removed).toBe(DOCUMENTS * (ROUNDS - 1))
  // 4 MiB stay for the next writes.
  expect(before).toBeLessThan(6 * MIB)
  // 64 pages, and one that has their owners.
  expect(largest).toBeLessThanOrEqual(65 * 4_096)
  expect((await store.read(documentId('notes', 7), ROUNDS))?.text).toBe(text)

  for (let round = ROUNDS + 1; round <= ROUNDS + 5; round++) {
    await updateAll(store, round, BigInt(round) * MINUTE_MICROS)
  }
  expect(await pruneAll(store, { rowsMax: 500 })).toBe(DOCUMENTS * 5)
  await store.close()
  expect(bytesOf(path)).toBeLessThan(6 * MIB)
})
