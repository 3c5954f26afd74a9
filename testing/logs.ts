/** The log of an Environment in a directory of its own, with a logger that writes to it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  collectedRecord,
  droppedRecord,
  lineRecords,
} from '../src/product/logs/collected-records.ts'
import { Logs } from '../src/product/logs/logs.ts'
import { SecretRedaction } from '../src/product/logs/secret-redaction.ts'
import { Cursors } from '../src/storage/cursors.ts'
import { Keyring } from '../src/storage/keyring.ts'
import type { RemovedSegments } from '../src/storage/logs/archiver.ts'
import { LogStore } from '../src/storage/logs/log-store.ts'
import type { RemoteSegments } from '../src/storage/logs/remote-segments.ts'
import { TestSystem } from '../src/system/system.ts'
import { createLog, type LogExtension, type Logger } from '../src/telemetry/log.ts'
import type { EnvironmentId, ProjectId } from '../src/value/ids.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from './product-roots.ts'

export interface TestLogs {
  readonly directory: string
  readonly system: TestSystem
  readonly logs: Logs
  readonly store: LogStore
  readonly log: Logger
  readonly redaction: SecretRedaction
  /** Reasons that the archive reported, and what became of a thread that ended. */
  readonly degraded: readonly string[]
  /** Segments that the archive removed. */
  readonly removed: readonly RemovedSegments[]
  /** Opens the same files again, after `close`. */
  reopen(): Promise<TestLogs>
  close(): Promise<void>
  dispose(): Promise<void>
}

interface TestLogsOptions {
  readonly directory?: string
  readonly system?: TestSystem
  readonly segmentBytesMax?: number
  readonly createWorker?: () => Worker
  readonly remote?: RemoteSegments
  readonly keyring?: Keyring
}

/** Records leave after a day, segments after ten. */
const DAY_SECONDS = 86_400

const KEYS = [{ id: 'key_00000000000000000000000001', key: new Uint8Array(32).fill(7) }]

function testKeyring(): Keyring {
  const file = { version: 1, active: KEYS[0]!.id, keys: KEYS } as unknown
  return new Keyring(
    file as ConstructorParameters<typeof Keyring>[0],
    ENVIRONMENT_ID as EnvironmentId,
  )
}

export async function openTestLogs(options: TestLogsOptions = {}): Promise<TestLogs> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'svc-logs-'))
  const system = options.system ?? new TestSystem()
  const degraded: string[] = []
  const removed: RemovedSegments[] = []
  const store = await LogStore.open({
    path: join(directory, 'logs.db'),
    unwrittenPath: join(directory, 'logs.unwritten'),
    directory: join(directory, 'logs'),
    environmentId: ENVIRONMENT_ID,
    system,
    archive: {
      segments: { bytesMax: options.segmentBytesMax ?? 2 ** 26, secondsMax: 3_600 },
      retention: { recordSeconds: DAY_SECONDS, segmentSeconds: 10 * DAY_SECONDS },
      remote: options.remote ?? null,
    },
    reportDropped: (dropped) => droppedRecord(dropped, system.nowMicros()),
    onDropped: () => {},
    onDegraded: (reason) => degraded.push(reason),
    onSegmentsRemoved: (each) => removed.push(each),
    onThreadEnded: (_reason, isRestarted) => {
      degraded.push(isRestarted ? 'restarted' : 'stopped')
    },
    createWorker: options.createWorker,
  })
  const redaction = new SecretRedaction()
  const extension: LogExtension = {
    redact: (text) => redaction.redact(text),
    collect: (record) => store.add(collectedRecord(record, system.nowMicros())),
    collectLines: (call, lines) => {
      for (const record of lineRecords(call, lines, system.nowMicros())) store.add(record)
    },
    admit: (lines) => store.admit(lines),
  }
  const log = createLog({ system, sink: () => {}, extension })
  const logs = new Logs({
    store,
    cursors: new Cursors(options.keyring ?? testKeyring()),
    system,
    projectId: PROJECT_ID as ProjectId,
    environmentId: ENVIRONMENT_ID as EnvironmentId,
  })
  const close = async () => {
    logs.endFollowers()
    await store.close()
  }
  return {
    directory,
    system,
    logs,
    store,
    log,
    redaction,
    degraded,
    removed,
    close,
    reopen: () => openTestLogs({ ...options, directory, system }),
    async dispose() {
      await close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
