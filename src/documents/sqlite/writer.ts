/**
 * Entry point of the writer thread of a document file, which keeps syncs to disk off the event
 * loop. It is bundled into writer.generated.ts and runs jobs in the order of their messages.
 */
import type { Database } from 'bun:sqlite'
import { openOwnDatabase } from '../../system/own-databases.ts'
import { configure } from './pragmas.ts'
import { describe, TransactionJobs } from './transaction-jobs.ts'
import type { WriterJob, WriterReply } from './writer-jobs.ts'

declare const self: Worker

let opened: { readonly database: Database; readonly jobs: TransactionJobs } | null = null

self.onmessage = (event: MessageEvent<WriterJob>) => {
  self.postMessage(reply(event.data))
}

function reply(job: WriterJob): WriterReply {
  try {
    return run(job)
  } catch (error) {
    // An exception that leaves the thread arrives with the bundled source in its message.
    return { failure: { outcome: 'uncertain', detail: describe(error) } }
  }
}

function run(job: WriterJob): WriterReply {
  if (job.kind === 'open') {
    const database = openOwnDatabase(job.path, job.isShared)
    configure(database, { cacheMiB: job.cacheMib, isTemporary: job.isTemporary })
    opened = { database, jobs: new TransactionJobs(database) }
    return { result: null }
  }
  if (job.kind === 'close') {
    try {
      // After it a backup of the file alone is complete, and the next start has nothing to replay.
      opened?.database.run('pragma wal_checkpoint(truncate)')
    } catch {
      // On a full disk the changes stay in the log, which the next start replays.
    }
    opened?.database.close()
    opened = null
    return { result: null }
  }
  if (opened === null) {
    return { failure: { outcome: 'none', detail: 'the writer thread has no open file' } }
  }
  if (job.kind === 'trim') {
    opened.database.run('pragma shrink_memory')
    Bun.gc(true)
    return { result: null }
  }
  return opened.jobs.run(job)
}
