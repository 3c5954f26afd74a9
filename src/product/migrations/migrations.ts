/** Migrations for operators: the list of a Release, the actions on one of them, and dry runs. */
import type { Engine } from '../../engine/engine.ts'
import type { DocumentPreview } from '../../engine/migrations/batches.ts'
import type { MigrationRecord } from '../../engine/migrations/migration-records.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { findRelease, listBoundReleases, listReleases } from '../../storage/control/releases.ts'
import { requireRecent } from '../../system/client-clock.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { OperationId, ReleaseId, RequestId } from '../../value/ids.ts'
import type { MigrationManifest } from '../../value/manifest.ts'
import type { MigrationAction } from '../../value/migrations/migrations.ts'
import { decodeStored } from '../../value/stored.ts'
import { encodeTagged } from '../../value/tagged.ts'
import type { MigrationItem, MigrationPreview } from '../../wire/migrations/migrations.ts'
import { refusalText } from '../compatibility/comparison/refusals.ts'
import { SchemaComparison } from '../compatibility/comparison/schema-comparison.ts'
import { incompatible, isFailed } from '../compatibility/release-checks.ts'
import { type Applied, applyOnce, isApplied } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, LoadedRelease, ReleasesPort, RootPort } from '../ports.ts'
import { checkCode } from '../releases/validate.ts'
import { notFound, releaseNotFound, stateConflict } from '../resource-faults.ts'
import { failingAsProduct } from '../schedules/scheduled-work.ts'

interface MigrationsPort {
  readonly engine: Pick<Engine, 'describe'> & {
    readonly migrations: Pick<Engine['migrations'], 'act' | 'dryRun' | 'find'>
  }
}

type ReadPorts = RootPort & ReleasesPort & MigrationsPort
export type MigrationPorts = ReadPorts & ChangePorts & { readonly log: Logger }

export interface MigrationList {
  readonly releaseId: ReleaseId
  readonly migrations: readonly MigrationItem[]
}

export interface ActInput {
  readonly name: string
  readonly releaseId: ReleaseId
  readonly action: Exclude<MigrationAction, 'dry-run'>
  readonly operationId: OperationId
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

/**
 * Lists the migrations of a Release; for null, those of the newest one. Rejects with
 * PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED, PRODUCT_UNAVAILABLE and PRODUCT_CORRUPT.
 */
export async function listMigrations(
  ports: ReadPorts,
  named: ReleaseId | null,
): Promise<MigrationList> {
  const releaseId = named ?? newestRelease(ports)
  const { manifest } = await ports.releases.load(releaseId)
  const migrations: MigrationItem[] = []
  for (const migration of manifest.migrations ?? []) {
    const record = await failingAsProduct(() => ports.engine.migrations.find(migration))
    migrations.push(itemOf(migration, releaseId, record))
  }
  return { releaseId, migrations }
}

function newestRelease({ root }: RootPort): ReleaseId {
  const [newest] = root.control.read((reader) => listReleases(reader, 1))
  if (newest !== undefined) return newest.releaseId
  throw notFound({ path: 'release', rule: 'a Release that exists', detail: 'no Release' })
}

/**
 * Runs, pauses, resumes or cancels a migration. Rejects with PRODUCT_NOT_FOUND for an unknown
 * Release or migration, PRODUCT_RELEASE_RETIRED, PRODUCT_STATE_CONFLICT for a state that does not
 * allow the action, PRODUCT_INCOMPATIBLE if the code does not fit its manifest or a bound Release
 * could not read what it writes, PRODUCT_OPERATION_REUSED, PRODUCT_INVALID and PRODUCT_UNAVAILABLE.
 */
export async function actOnMigration(
  ports: MigrationPorts,
  actor: Actor,
  input: ActInput,
): Promise<Applied<MigrationItem>> {
  const { operationId, requestId, changedAtMicros, name, releaseId, action } = input
  // A crash may have lost the record of an action; repeating one that took effect changes nothing.
  const item = isApplied(ports, operationId) ? null : await act(ports, input)
  const request = { name, releaseId, action }
  const kind = `migration.${action}` as const
  const intent = { operationId, kind, request, changedAtMicros, subject: name, requestId }
  return applyOnce(ports, actor, intent, () => {
    if (item === null) throw unknownMigration(name)
    return { result: item.state, revision: item.revision }
  })
}

async function act(
  ports: MigrationPorts,
  { name, releaseId, action, changedAtMicros }: ActInput,
): Promise<{ readonly state: MigrationItem; readonly revision: bigint }> {
  requireRecent(ports.system, changedAtMicros, 'changedAtMicros')
  const { release, migration } = await findMigration(ports, releaseId, name)
  if (action === 'run' || action === 'resume') await requireRunnable(ports, release, migration)
  const acted = await failingAsRetired(() =>
    ports.engine.migrations.act(action, release, migration),
  )
  const { record, isAllowed } = acted
  if (!isAllowed || record === null) throw notAllowed(action, releaseId, record)
  return { state: itemOf(migration, releaseId, record), revision: record.version }
}

/**
 * Shows the first documents before and after the migration, and stores nothing. Rejects as
 * `actOnMigration` does, and with PRODUCT_INCOMPATIBLE if the code fails as a whole.
 */
export async function previewMigration(
  ports: MigrationPorts,
  { name, releaseId }: Pick<ActInput, 'name' | 'releaseId'>,
): Promise<{ readonly item: MigrationItem; readonly documents: readonly MigrationPreview[] }> {
  const { release, migration } = await findMigration(ports, releaseId, name)
  await requireMatchingCode(ports, release)
  const record = await failingAsProduct(() => ports.engine.migrations.find(migration))
  const documents = await failingAsCode(() => ports.engine.migrations.dryRun(release, migration))
  return {
    item: itemOf(migration, releaseId, record),
    documents: documents.map(previewed),
  }
}

/** Characters of the message of an error. */
const MESSAGE_MAX = 500

function previewed({ documentId, before, after, error }: DocumentPreview): MigrationPreview {
  const tagged = (stored: string) =>
    JSON.parse(encodeTagged(decodeStored(stored))) as MigrationPreview['before']
  return {
    documentId,
    before: tagged(before),
    after: after === null ? null : tagged(after),
    error: error === null ? null : { ...error, message: error.message.slice(0, MESSAGE_MAX) },
  }
}

async function findMigration(
  ports: ReadPorts,
  releaseId: ReleaseId,
  name: string,
): Promise<{ readonly release: LoadedRelease; readonly migration: MigrationManifest }> {
  const release = await ports.releases.load(releaseId)
  const migration = release.manifest.migrations?.find((each) => each.name === name)
  if (migration === undefined) throw unknownMigration(name)
  return { release, migration }
}

async function requireRunnable(
  ports: MigrationPorts,
  release: LoadedRelease,
  migration: MigrationManifest,
): Promise<void> {
  await requireMatchingCode(ports, release)
  await requireReadable(ports, release, migration)
}

/**
 * Checks the code against the manifest, unless a validation has. A Release whose documents are to
 * be migrated first cannot be validated before.
 */
async function requireMatchingCode(ports: MigrationPorts, release: LoadedRelease): Promise<void> {
  const record = ports.root.control.read((reader) => findRelease(reader, release.releaseId))
  if (record === null) throw releaseNotFound(release.releaseId)
  if (record.state === 'validated') return
  const checks = record.state === 'rejected' ? record.checks : await checkCode(ports, release)
  if (checks.some(isFailed)) throw incompatible(checks)
}

/**
 * Throws PRODUCT_INCOMPATIBLE if a bound Release could not read what the code writes into the
 * table.
 */
async function requireReadable(
  ports: ReadPorts,
  release: LoadedRelease,
  { table }: MigrationManifest,
): Promise<void> {
  const bound = ports.root.control.read(listBoundReleases)
  const tablesOf = ({ tables }: LoadedRelease) =>
    new Map([...tables].filter(([name]) => name === table))
  const violations: { path: string; rule: string }[] = []
  for (const id of bound.filter((other) => other !== release.releaseId)) {
    const reader = await ports.releases.load(id)
    const pair = { reader: tablesOf(reader), writer: tablesOf(release), newer: 'writer' } as const
    const [refusal] = new SchemaComparison().conflicts(pair)
    if (refusal === undefined) continue
    const rule = `readable by ${id}, which serves: ${refusalText(refusal)}`
    violations.push({ path: 'releaseId', rule })
  }
  if (violations.length > 0) throw new Fault('PRODUCT_INCOMPATIBLE', { violations })
}

function notAllowed(
  action: ActInput['action'],
  releaseId: ReleaseId,
  record: MigrationRecord | null,
): Fault {
  const state = record?.state ?? 'pending'
  const isElsewhere = record !== null && record.releaseId !== releaseId
  const where = isElsewhere ? ` in ${record.releaseId}` : ''
  const rule = `an action for a migration that is ${state}${where}`
  return stateConflict({ path: 'action', rule, detail: `${action} of a ${state} migration` })
}

function unknownMigration(name: string): Fault {
  return notFound({ path: 'name', rule: 'a migration of the Release', detail: name })
}

function itemOf(
  { name, table }: MigrationManifest,
  releaseId: ReleaseId,
  record: MigrationRecord | null,
): MigrationItem {
  const micros = (value: bigint | null | undefined) => (value == null ? null : String(value))
  return {
    name,
    table,
    releaseId: (record?.releaseId as ReleaseId | undefined) ?? releaseId,
    state: record?.state ?? 'pending',
    processed: String(record?.processed ?? 0n),
    changed: String(record?.changed ?? 0n),
    failed: String(record?.failed ?? 0n),
    lastErrorCode: record?.lastErrorCode ?? null,
    lastDocumentId: record?.lastDocumentId ?? null,
    startedAtMicros: micros(record?.startedAtMicros),
    finishedAtMicros: micros(record?.finishedAtMicros),
  }
}

async function failingAsRetired<T>(task: () => Promise<T>): Promise<T> {
  return failingAsProduct(() =>
    task().catch((error: unknown) => {
      throw isFault(error, 'RELEASE_RETIRED') ? new Fault('PRODUCT_RELEASE_RETIRED') : error
    }),
  )
}

/** Translates a failure of the code as a whole, which names no document. */
async function failingAsCode<T>(task: () => Promise<T>): Promise<T> {
  return failingAsProduct(task).catch((error: unknown) => {
    const cause = error instanceof Error ? error.cause : null
    if (!isFault(cause, 'FUNCTION_FAILED', 'LIMIT_EXCEEDED', 'DEADLINE_EXCEEDED')) throw error
    const rule = `code that ends for the first documents (${cause.code})`
    throw new Fault('PRODUCT_INCOMPATIBLE', { violations: [{ path: 'name', rule }], cause })
  })
}
