/** Settings that each connection to the document file applies first. */
import type { Database } from 'bun:sqlite'

/** A change of one document writes a page twice. Keys longer than a quarter of a page overflow. */
const PAGE_BYTES = 4096
/** 16 MiB of pages: checkpoints are rare, and each takes only some milliseconds. */
const CHECKPOINT_PAGES = 4096
const WAL_BYTES_KEPT = 64 * 1024 * 1024

export interface PragmaOptions {
  readonly cacheMiB: number
  /** True if commits need not survive a power failure. */
  readonly isTemporary: boolean
}

export function configure(database: Database, { cacheMiB, isTemporary }: PragmaOptions): void {
  for (const pragma of [
    `page_size = ${PAGE_BYTES}`,
    'journal_mode = wal',
    // A COMMIT returns after the write-ahead log is on the disk.
    `synchronous = ${isTemporary ? 'off' : 'full'}`,
    // Only macOS needs it: a plain sync there ends at the cache of the drive.
    'fullfsync = on',
    // The schema of a manipulated file must not call functions.
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
