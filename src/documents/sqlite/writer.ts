/**
 * The writing thread of a document file, so that no sync to disk holds up the event loop. It is
 * bundled into writer.generated.ts and runs its jobs in the order in which they were sent.
 */
import { Database } from 'bun:sqlite'
import { configure } from './pragmas.ts'
import type { WriterJob, WriterReply } from './writer-jobs.ts'
import { describe, Writes } from './writes.ts'

declare const self: Worker

let opened: { readonly database: Database; readonly writes: Writes } | null = null

self.onmessage = (event: MessageEvent<WriterJob>) => {
  self.postMessage(reply(event.data))
}

function reply(job: WriterJob): WriterReply {
  try {
    return answer(job)
  } catch (error) {
    // What leaves the thread as an exception arrives with the bundled source around it.
    return { failure: { outcome: 'uncertain', detail: describe(error) } }
  }
}

function answer(job: WriterJob): WriterReply {
  if (job.kind === 'open') {
    const database = new Database(job.path, { readwrite: true, create: false })
    configure(database, { cacheMiB: 32 })
    opened = { database, writes: new Writes(database) }
    return { answer: null }
  }
  if (job.kind === 'close') {
    try {
      // A backup of the file alone is whole then, and the next start has nothing to replay.
      opened?.database.run('pragma wal_checkpoint(truncate)')
    } catch {
      // On a full disk it stays in the log, which the next start replays.
    }
    opened?.database.close()
    opened = null
    return { answer: null }
  }
  if (opened === null) {
    return { failure: { outcome: 'none', detail: 'the writing thread has no open file' } }
  }
  return opened.writes.run(job)
}
