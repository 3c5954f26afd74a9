/**
 * Readings of a Product root that this process owns, or whose lock it holds: control database,
 * artifacts, documents and log. Nothing is migrated or repaired.
 */
import { existsSync, lstatSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { inspectSqliteDocuments } from '../../../documents/sqlite/inspection.ts'
import { listEntries } from '../../../storage/control/configuration.ts'
import type { ControlReader } from '../../../storage/control/database.ts'
import { findEnvironment, readDocumentsSequence } from '../../../storage/control/environment.ts'
import { inspectControl } from '../../../storage/control/inspection.ts'
import { listKeyringChecks } from '../../../storage/control/keyring-checks.ts'
import { hasReleases, listLiveReleases } from '../../../storage/control/releases.ts'
import type { Keyring } from '../../../storage/keyring.ts'
import { inspectLog, type LogInspection } from '../../../storage/logs/log-inspection.ts'
import {
  CONTROL_FILE,
  DOCUMENTS_FILE,
  LOGS_DIRECTORY,
  LOGS_FILE,
  LOGS_UNWRITTEN_FILE,
  requireControl,
} from '../../../storage/root.ts'
import { unseal } from '../../../storage/sealing.ts'
import type { DatabaseUse } from '../../../system/inspected-databases.ts'
import type { System } from '../../../system/system.ts'
import { idMillis } from '../../../value/ids.ts'
import type { RootDescriptor } from '../../../value/product-root.ts'
import type {
  ArtifactsReading,
  ControlContentReading,
  ControlReading,
  DocumentFileReading,
  LogReading,
  Reading,
} from '../readings.ts'
import { skip } from '../readings.ts'
import { countOrphans, listContents } from './files.ts'
import { readingOf } from './reading-of.ts'
import { readSegments, type SegmentsReading } from './segments.ts'

const MIB = 1024 * 1024
/** A check reads the whole file: for seconds on a stopped root, for milliseconds in a server. */
const INTEGRITY_BYTES_MAX = { stopped: 1024 * MIB, running: 4 * MIB } as const
const SECRETS_MAX = 100

export interface RootOptions {
  readonly path: string
  readonly descriptor: RootDescriptor
  readonly keyring: Keyring
  /** True inside the server that owns the root. */
  readonly isRunning: boolean
  readonly use: DatabaseUse
  readonly segmentMillisMax: number
  /** Records that this server has dropped; 0 outside of one. */
  readonly droppedRecords: number
  readonly system: System
}

export interface ControlReadings {
  readonly control: Reading<ControlReading>
  readonly content: Reading<ControlContentReading>
  readonly artifacts: Reading<ArtifactsReading>
  /** True if documents were written, or Releases that may write some. */
  readonly mayHoldDocuments: boolean
}

interface Content extends ControlContentReading {
  readonly hasReleases: boolean
  readonly stored: readonly { readonly digest: string; readonly bytes: number }[]
}

const integrityMax = ({ isRunning }: RootOptions): number =>
  INTEGRITY_BYTES_MAX[isRunning ? 'running' : 'stopped']

export async function readControl(options: RootOptions): Promise<ControlReadings> {
  const path = join(options.path, CONTROL_FILE)
  const unknown = { mayHoldDocuments: false }
  const present = await readingOf(() => requireControl(options.path))
  if (!('value' in present) || !existsSync(path)) {
    const none = skip('the root has no control database yet')
    const control = 'value' in present ? none : present
    return { control, content: none, artifacts: none, ...unknown }
  }
  const { use } = options
  const inspected = await readingOf(() =>
    inspectControl({ path, use, integrityBytesMax: integrityMax(options) }, (reader) =>
      readContent(reader, options),
    ),
  )
  if (!('value' in inspected)) {
    const none = skip('control.db cannot be read')
    return { control: inspected, content: none, artifacts: none, ...unknown }
  }
  const { found, content } = inspected.value
  if (content === null) {
    const none = skip('control.db has another schema version')
    return { control: { value: found }, content: none, artifacts: none, ...unknown }
  }
  const { stored, hasReleases: hasAny, ...rest } = content
  const artifacts = await readingOf(() => compareArtifacts(stored, options))
  const mayHoldDocuments = rest.documentsSequence > 0 || hasAny
  return { control: { value: found }, content: { value: rest }, artifacts, mayHoldDocuments }
}

function readContent(
  reader: ControlReader,
  { descriptor, keyring, system }: RootOptions,
): Content | null {
  const environment = findEnvironment(reader)
  if (environment === null) return null
  const secrets = listEntries(reader).flatMap(({ name, revision, content }) =>
    content.kind === 'secret' ? [{ name, revision, sealed: content.sealed }] : [],
  )
  const { environmentId } = environment
  const unopened = secrets.slice(0, SECRETS_MAX).filter(({ name, revision, sealed }) => {
    try {
      unseal(keyring, { environmentId, name, revision }, sealed)
      return false
    } catch {
      return true
    }
  })
  const pending = reader.get<{ count: number; oldest: string | null }>(
    'select count(*) as count, min(audit_id) as oldest from audit_outbox where held = 0',
  )!
  return {
    isSameEnvironment:
      environmentId === descriptor.environmentId && environment.projectId === descriptor.projectId,
    missingKeys: listKeyringChecks(reader)
      .filter(({ keyId, digest }) => !keyring.fits(keyId, digest))
      .map(({ keyId }) => keyId),
    keys: keyring.ids.length,
    sealedSecrets: secrets.length,
    unopenedSecrets: unopened.map(({ name }) => name),
    pendingAudit: pending.count,
    oldestPendingAuditMillis:
      pending.oldest === null ? 0 : Math.max(0, system.nowMillis() - idMillis(pending.oldest)),
    documentsSequence: readDocumentsSequence(reader),
    hasReleases: hasReleases(reader),
    stored: listLiveReleases(reader).flatMap(({ manifest, artifact }) => [manifest, artifact]),
  }
}

async function compareArtifacts(
  stored: Content['stored'],
  { path, system }: RootOptions,
): Promise<ArtifactsReading> {
  const directory = join(path, 'artifacts/sha256')
  const referenced = new Map(stored.map(({ digest, bytes }) => [digest, bytes]))
  // At once: a Release that is retired meanwhile loses its files.
  const missing = [...referenced].filter(([digest, bytes]) => {
    const hex = digest.slice('sha256:'.length)
    const file = join(directory, hex.slice(0, 2), hex.slice(2))
    return lstatSync(file, { throwIfNoEntry: false })?.size !== bytes
  })
  const contents = await listContents(directory)
  return {
    referenced: referenced.size,
    missing: missing.map(([digest]) => digest),
    orphaned: await countOrphans(contents, (hex) => referenced.has(`sha256:${hex}`), system),
    isPartial: contents.isPartial,
  }
}

/** Reads the document file; the documents in it are another reading. */
export async function readDocumentFile(
  options: RootOptions,
  mayHoldDocuments: boolean,
): Promise<Reading<DocumentFileReading>> {
  const path = join(options.path, DOCUMENTS_FILE)
  if (!existsSync(path)) {
    return mayHoldDocuments
      ? { failed: 'documents.db is missing, although Releases or documents were written' }
      : skip('the root has no documents yet')
  }
  return readingOf(() => ({
    ...inspectSqliteDocuments({
      path,
      use: options.use,
      integrityBytesMax: integrityMax(options),
    }),
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
  }))
}

export async function readLog(options: RootOptions): Promise<{
  readonly log: Reading<LogReading>
  readonly newestAtMicros: number | null
}> {
  const path = join(options.path, LOGS_FILE)
  if (!existsSync(path)) return { log: skip('the root has no log yet'), newestAtMicros: null }
  const inspected = await readingOf(async () => {
    const found = inspectLog({
      path,
      unwrittenPath: join(options.path, LOGS_UNWRITTEN_FILE),
      isRunning: options.isRunning,
      integrityBytesMax: integrityMax(options),
    })
    const segments = await readSegments(join(options.path, LOGS_DIRECTORY), found.segments)
    return { found, segments }
  })
  if (!('value' in inspected)) return { log: inspected, newestAtMicros: null }
  const { found, segments } = inspected.value
  const log = { value: logReading(found, segments, options) }
  return { log, newestAtMicros: found.newestAtMicros }
}

function logReading(
  { newestAtMicros, unarchivedAtMicros, lost, integrity, schema }: LogInspection,
  segments: SegmentsReading,
  { isRunning, system, segmentMillisMax, droppedRecords }: RootOptions,
): LogReading {
  // A stopped server closes no segment: until its end counts.
  const until = isRunning ? system.nowMillis() : (newestAtMicros ?? 0) / 1000
  return {
    integrity,
    schema,
    ...segments,
    lost: lost + droppedRecords,
    unarchivedMillis:
      unarchivedAtMicros === null ? null : Math.max(0, until - unarchivedAtMicros / 1000),
    segmentMillisMax,
  }
}
