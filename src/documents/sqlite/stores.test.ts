import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { documentId } from '../../../testing/documents/store-fixtures.ts'
import { documentHistorySuite } from '../../../testing/documents/store-history-suite.ts'
import { documentRetentionSuite } from '../../../testing/documents/store-retention-suite.ts'
import { documentScanSuite } from '../../../testing/documents/store-scan-suite.ts'
import { documentStoreSuite } from '../../../testing/documents/store-suite.ts'
import { openSqliteDocuments } from './stores.ts'

async function harness() {
  const directory = mkdtempSync(join(tmpdir(), 'documents-'))
  return {
    open: () => openSqliteDocuments(join(directory, 'documents.db')),
    dispose: async () => rmSync(directory, { recursive: true }),
  }
}

test('a trimmed store has no cached documents', async () => {
  const { open, dispose } = await harness()
  const store = await open()
  try {
    const write = { id: documentId('notes', 1), createdAtMicros: 0n, text: '{}', entries: [] }
    await store.commit({ transactions: [{ sequence: 1, atMicros: 0n, writes: [write] }] })
    expect(store.findCached(write.id, 1)?.text).toBe('{}')
    store.trim()
    expect(store.findCached(write.id, 1)).toBeUndefined()
    expect(await store.read(write.id, 1)).toMatchObject({ text: '{}' })
  } finally {
    await store.close()
    await dispose()
  }
})

documentStoreSuite('sqlite', harness)
documentRetentionSuite('sqlite', harness)
documentScanSuite('sqlite', harness)
documentHistorySuite('sqlite', harness)
