/** Opens the log of the Environment and connects the server's logger to it. */
import { join } from 'node:path'
import { Fault, isFault } from '../errors/fault.ts'
import { collectedRecord, droppedRecord, lineRecords } from '../product/logs/collected-records.ts'
import { Logs } from '../product/logs/logs.ts'
import { SecretRedaction } from '../product/logs/secret-redaction.ts'
import type { LogSettings } from '../settings/logs.ts'
import type { S3Settings } from '../settings/storage.ts'
import { S3Objects } from '../storage/blobs/s3-objects.ts'
import { Cursors } from '../storage/cursors.ts'
import { invalidRoot } from '../storage/files.ts'
import { LogStore } from '../storage/logs/log-store.ts'
import { S3Segments } from '../storage/logs/remote-segments.ts'
import {
  LOGS_DIRECTORY,
  LOGS_FILE,
  LOGS_UNWRITTEN_FILE,
  type ProductRoot,
} from '../storage/root.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import { revealAddress } from './blobs.ts'

const DAY_SECONDS = 86_400

export interface EnvironmentLogs {
  readonly logs: Logs
  /** Adds the Project and the Environment to each record, and writes to the Environment's log. */
  readonly log: Logger
  /** Adds the JSON of records that another process of the server has made. */
  readonly addRecords: (records: readonly string[]) => void
  /** Values that are redacted in every record. */
  readonly redaction: SecretRedaction
  close(): Promise<void>
}

export interface LogOptions {
  readonly root: ProductRoot
  readonly settings: LogSettings
  /** The store of the segments; null for the Product root. */
  readonly s3: S3Settings | null
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
}

/** Throws SERVER_PRODUCT_ROOT_INVALID or SERVER_PRODUCT_ROOT_UNAVAILABLE, SERVER_DATABASE_NEWER. */
export async function openLogs(options: LogOptions): Promise<EnvironmentLogs> {
  const { root, settings, s3, system, metrics } = options
  const { projectId, environmentId } = root.descriptor
  const own = options.log.with({ projectId, environmentId })
  const { logRecordsStored, logRecordsDropped } = metrics.counters
  const store = await openStore({
    path: join(root.path, LOGS_FILE),
    unwrittenPath: join(root.path, LOGS_UNWRITTEN_FILE),
    directory: join(root.path, LOGS_DIRECTORY),
    environmentId,
    system,
    archive: {
      segments: { bytesMax: settings.segmentBytesMax, secondsMax: settings.segmentSecondsMax },
      retention: {
        recordSeconds: settings.retentionDays * DAY_SECONDS,
        segmentSeconds: settings.archiveDays * DAY_SECONDS,
      },
      remote: s3 === null ? null : new S3Segments(new S3Objects(revealAddress(s3)), environmentId),
    },
    reportDropped: (dropped) => droppedRecord(dropped, system.nowMicros()),
    onDropped: () => logRecordsDropped.add(),
    onDegraded: (reason) => log.error('logs.archive_degraded', { message: `Archive: ${reason}.` }),
    onSegmentsRemoved: ({ segments, newest, sha256 }) => {
      const message = `${segments} archive segments were removed after their retention.`
      log.info('logs.segments_removed', { message, segments, newest, sha256 })
    },
    onThreadEnded: (reason, isRestarted) => {
      const next = isRestarted ? 'It is started again.' : 'Restart the server to write it again.'
      const message = `The log is not written: ${reason}. ${next}`
      log.error(isRestarted ? 'logs.thread_restarted' : 'logs.thread_stopped', { message })
    },
  })
  const redaction = new SecretRedaction()
  const log = own.with(
    {},
    {
      redact: (text) => redaction.redact(text),
      collect: (record) => {
        logRecordsStored.add()
        store.add(collectedRecord(record, system.nowMicros()))
      },
      collectLines: (call, lines) => {
        logRecordsStored.add(lines.length)
        for (const record of lineRecords(call, lines, system.nowMicros())) store.add(record)
      },
      admit: (lines) => store.admit(lines),
    },
  )
  const cursors = new Cursors(root.keyring)
  const logs = new Logs({ store, cursors, system, projectId, environmentId })
  metrics.addSource(() => ({ logRecordsQueued: store.queued, logFollowers: logs.followers }))
  return {
    logs,
    log,
    redaction,
    addRecords: (records) => {
      logRecordsStored.add(records.length)
      for (const record of records) store.add(record)
    },
    async close() {
      logs.endFollowers()
      await store.close()
    },
  }
}

async function openStore(options: Parameters<typeof LogStore.open>[0]): Promise<LogStore> {
  try {
    return await LogStore.open(options)
  } catch (cause) {
    if (isFault(cause)) throw cause
    const { message } = cause as Error
    // The thread of the log reports the code of an error.
    if (message === 'SERVER_DATABASE_NEWER') throw new Fault(message, { detail: LOGS_FILE })
    throw invalidRoot(`${LOGS_FILE} cannot be opened: ${message}`)
  }
}
