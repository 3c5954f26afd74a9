/** Fills an empty document file without a sync before the end: a failed restore removes it. */
import type { Database } from 'bun:sqlite'
import { DEFAULT_PLAN } from '../../system/memory/memory-plan.ts'
import { openOwnDatabase } from '../../system/own-databases.ts'
import { microsColumn } from '../column-values.ts'
import type { OperationRecord, StoredDocument } from '../store.ts'
import type { LoadedState, StoreLoader } from '../store-loader.ts'
import { BatchWriter } from './batch-writer.ts'
import { storeFault } from './databases.ts'
import { configure } from './pragmas.ts'
import { openSqliteDocuments } from './stores.ts'
import { loadState, type WriterState } from './writer-state.ts'

/** Creates the file. Raises UNAVAILABLE, and PRODUCT_CORRUPT where the file has content. */
export async function openSqliteLoader(path: string, state: LoadedState): Promise<StoreLoader> {
  const store = await openSqliteDocuments(path, { mayBeNew: true })
  try {
    await store.setFieldShapes(state.shapes)
  } finally {
    await store.close()
  }
  return new SqliteLoader(path, state)
}

class SqliteLoader implements StoreLoader {
  readonly #database: Database
  readonly #state: LoadedState
  readonly #writer: BatchWriter
  readonly #rows: WriterState

  constructor(path: string, state: LoadedState) {
    this.#database = openOwnDatabase(path)
    this.#state = state
    configure(this.#database, { cacheMiB: DEFAULT_PLAN.writerCacheMib, isTemporary: true })
    this.#writer = new BatchWriter(this.#database)
    this.#rows = loadState(this.#database)
  }

  add(documents: readonly StoredDocument[]): void {
    this.#transaction(() => {
      for (const document of documents) {
        this.#writer.writeVersion(this.#rows, { ...document, entries: [] }, document.sequence)
      }
    })
  }

  addOperations(records: readonly OperationRecord[]): void {
    this.#transaction(() => {
      for (const record of records) this.#writer.writeOperation(record)
    })
  }

  finish(): void {
    const { sequence, atMicros } = this.#state
    this.#transaction(() => {
      // Each document has one version: retention has nothing to look for in them.
      const last = this.#rows.nextRow - 1
      this.#database.run('update store set latest_sequence = ?1, pruned_row = ?2', [sequence, last])
      if (sequence === 0) return
      const insert = 'insert into sequence_times (sequence, at_micros) values (?1, ?2)'
      this.#database.run(insert, [sequence, microsColumn(atMicros)])
    })
    try {
      // The checkpoint syncs the log and the file.
      this.#database.run('pragma synchronous = full')
      this.#database.run('pragma wal_checkpoint(truncate)')
    } catch (error) {
      throw storeFault(error)
    }
  }

  async close(): Promise<void> {
    this.#database.close()
  }

  #transaction(write: () => void): void {
    try {
      this.#database.run('begin immediate')
      write()
      this.#database.run('commit')
    } catch (error) {
      throw storeFault(error)
    }
  }
}
