/** Settings that each connection to the document file makes before anything else. */
import type { Database } from 'bun:sqlite'

/** A change of one document writes a page, twice; longer keys than a quarter of it overflow. */
const PAGE_BYTES = 4096
/** 16 MiB of pages: a checkpoint is rare enough and still takes some milliseconds only. */
const CHECKPOINT_PAGES = 4096
const WAL_BYTES_KEPT = 64 * 1024 * 1024

export interface PragmaOptions {
  readonly cacheMiB: number
}

export function configure(database: Database, { cacheMiB }: PragmaOptions): void {
  for (const pragma of [
    `page_size = ${PAGE_BYTES}`,
    'journal_mode = wal',
    // A COMMIT returns after the write-ahead log is on the disk.
    'synchronous = full',
    // Elsewhere than on macOS it changes nothing; there a plain sync stops at the drive's cache.
    'fullfsync = on',
    // A file that somebody else wrote must not call functions from its schema.
    'trusted_schema = off',
    'busy_timeout = 5000',
    `cache_size = ${-cacheMiB * 1024}`,
    `wal_autocheckpoint = ${CHECKPOINT_PAGES}`,
    `journal_size_limit = ${WAL_BYTES_KEPT}`,
    'temp_store = memory',
  ]) {
    database.run(`pragma ${pragma}`)
  }
}
