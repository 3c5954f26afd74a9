/**
 * Entry point of the writer thread of the log, which keeps disk and compression off the event
 * loop. It is bundled into log-writer.generated.ts and runs jobs in the order of their messages.
 */
import type { Database } from 'bun:sqlite'
import { assert } from '../../errors/assert.ts'
import { openOwnDatabase } from '../../system/own-databases.ts'
import { LOG_LEVELS } from '../../value/logs/log-levels.ts'
import { LogArchive } from './log-archive.ts'
import { migrateLogs } from './log-migrations.ts'
import type { LogBatch, LogJob, LogReply, LogResults, OpenLog, RecordColumns } from './log-rows.ts'
import { DirectorySegments } from './log-segments.ts'

declare const self: Worker

let opened: { readonly database: Database; readonly archive: LogArchive } | null = null

self.onmessage = (event: MessageEvent<LogJob>) => {
  self.postMessage(reply(event.data))
}

function reply(job: LogJob): LogReply {
  try {
    return { result: run(job) }
  } catch (error) {
    if (opened?.database.inTransaction) opened.database.run('rollback')
    const { code, message } = error as { code?: unknown; message?: unknown }
    return { failure: typeof code === 'string' ? code : String(message) }
  }
}

function run(job: LogJob): LogResults[keyof LogResults] {
  if (job.kind === 'open') return open(job)
  assert(opened !== null, 'the log is not open')
  const { database, archive } = opened
  switch (job.kind) {
    case 'append':
      append(database, job)
      // Without the line feeds between the records.
      archive.added(job.records.length - (job.count - 1))
      return null
    case 'archive':
      return archive.archive(job)
    case 'prune':
      return archive.prune(job)
    case 'unmoved':
      return archive.unmoved()
    case 'moved':
      archive.moved(job.number, job.now)
      return null
    case 'concerned':
      return archive.concerned(job.before)
    case 'expire':
      return archive.expire(job.before)
    case 'expired':
      archive.expired(job.number)
      return null
    case 'state':
      return archive.state()
    case 'close':
      opened = null
      try {
        database.run('pragma wal_checkpoint(truncate)')
      } finally {
        database.close()
      }
      return null
  }
}

/** The file exists; the main thread created it with its mode. */
function open({ path, directory, environmentId, now, isRemote }: OpenLog): number {
  const database = openOwnDatabase(path)
  try {
    for (const pragma of [
      'journal_mode = wal',
      // A power loss may remove the newest records, but damages nothing.
      'synchronous = normal',
      'trusted_schema = off',
      'busy_timeout = 5000',
      'journal_size_limit = 67108864',
    ]) {
      database.run(`pragma ${pragma}`)
    }
    migrateLogs(database)
    const files = new DirectorySegments(directory)
    opened = { database, archive: new LogArchive({ database, files, environmentId, isRemote }) }
    return nextSequence(database, now)
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Sequences continue where they ended. A new file begins with the time in microseconds, so that a
 * cursor of a file that was lost never names another record.
 */
function nextSequence(database: Database, now: number): number {
  const row = database
    .query<{ newest: number | null }, []>(
      `select max(newest) as newest from
         (select max(sequence) as newest from log_records
          union all select max(last) from log_segments)`,
    )
    .get()
  return row?.newest == null ? now : row.newest + 1
}

function append(database: Database, { first, records }: LogBatch): void {
  const insert = database.query(
    `insert into log_records (sequence, at, stream, level, release, function, request, record)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  database.run('begin immediate')
  for (const [i, record] of records.split('\n').entries()) {
    const columns = JSON.parse(record) as RecordColumns
    insert.run(
      first + i,
      Number(columns.atMicros),
      columns.stream,
      LOG_LEVELS.indexOf(columns.level),
      columns.releaseId ?? null,
      columns.function ?? null,
      columns.requestId ?? null,
      record,
    )
  }
  database.run('commit')
}
