/**
 * `svc dev --from`: fills a root with the documents of a backup. Everything is written into a
 * directory of its own first, so that a copy that fails leaves the root as it was.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { addressOf } from '../../backups/format/chain.ts'
import { NEWEST, selectRestore } from '../../backups/restore/goals.ts'
import type { CopyRequest } from '../../client/development/workspace-tools.ts'
import { tableOf } from '../../documents/compact-ids.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { Fault } from '../../errors/fault.ts'
import { findHistory, openIdentities, openTarget } from '../../server/restore/sources.ts'
import type { ProcessEnvironment } from '../../settings/sources.ts'
import { recordDocumentsSequence } from '../../storage/control/environment.ts'
import { CopiedFiles } from '../../storage/restores/copied-files.ts'
import {
  COPY_DIRECTORY,
  COPY_FILES_FILE,
  DOCUMENTS_FILE,
  openProductRoot,
  type ProductRoot,
} from '../../storage/root.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import { RESERVED_TABLES, type WorkspaceDescription } from '../../value/manifest.ts'
import { type BackupSurvey, surveyBackup } from './backup-survey.ts'
import { type CopiedDocuments, copyDocuments } from './copied-documents.ts'
import { type CopyRecord, readCopyRecord, writeCopyRecord } from './copy-record.ts'
import { KeyedValues } from './keyed-values.ts'
import { NO_REDACTION, parseRedaction, type RedactionFile } from './redaction-file.ts'
import { planRedaction } from './redaction-plan.ts'
import { Redactor } from './redactor.ts'
import { WorkspaceTables } from './workspace-tables.ts'

const KEY_BYTES = 32
const SCAN = { rowsMax: 1_000, textUnitsMax: 1024 * 1024 }

export interface DevelopmentCopy {
  readonly rootPath: string
  readonly request: CopyRequest
  readonly variables: ProcessEnvironment
  readonly system: System
  /** Throws a Fault for a root that must not be filled. */
  readonly requireUsable: (root: ProductRoot) => void
  /** Builds the Workspace. Throws WORKSPACE_INVALID. */
  readonly describe: () => Promise<WorkspaceDescription>
  /** Called with the documents that were written so far. */
  readonly onProgress: (documents: number) => void
  /** Stops the copy, which leaves the root as it was and rejects with the reason. */
  readonly signal: AbortSignal
}

export interface MadeCopy extends Omit<CopiedDocuments, 'sequence'> {
  readonly record: CopyRecord
}

/**
 * Returns null for a root that is a copy of this backup already, with the same redaction: it stays
 * as it is. Raises COPY_ROOT_NOT_EMPTY for any other root with documents, REDACTION_INVALID,
 * WORKSPACE_INVALID, and what a restore raises for a backup.
 */
export async function copyBackup(copy: DevelopmentCopy): Promise<MadeCopy | null> {
  const { rootPath, request, system, signal } = copy
  const redaction = request.redaction === null ? NO_REDACTION : parseRedaction(request.redaction)
  const known = readCopyRecord(rootPath)
  if (known !== null) {
    continueCopy(copy, known)
    return null
  }
  const root = await openProductRoot(rootPath, system)
  try {
    copy.requireUsable(root)
    const documents = join(rootPath, DOCUMENTS_FILE)
    await requireNoDocuments(documents)
    const directory = join(rootPath, COPY_DIRECTORY)
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(directory, { mode: 0o700 })
    try {
      const { sequence, ...made } = await writeCopy(copy, redaction, directory)
      signal.throwIfAborted()
      for (const log of ['', '-wal', '-shm']) rmSync(`${documents}${log}`, { force: true })
      for (const name of [COPY_FILES_FILE, DOCUMENTS_FILE]) {
        renameSync(join(directory, name), join(rootPath, name))
      }
      root.control.transaction((tx) => recordDocumentsSequence(tx, sequence))
      writeCopyRecord(rootPath, made.record)
      return made
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  } finally {
    root.close()
  }
}

/** A copy that was redacted less than this start asks for must not be served. */
function continueCopy({ rootPath, request }: DevelopmentCopy, known: CopyRecord): void {
  const { from, environmentId, historyId, identities } = request
  const isSame =
    known.from === from &&
    (environmentId ?? known.environmentId) === known.environmentId &&
    (historyId ?? known.historyId) === known.historyId
  if (!isSame) throw notEmpty(`it is a copy of ${known.from}, history ${known.historyId}`)
  if (known.redaction !== digestOf(request)) {
    throw notEmpty('it is a copy of this backup with another redaction')
  }
  // The files that open the backup may have moved.
  writeCopyRecord(rootPath, { ...known, identities: [...identities] })
}

async function writeCopy(copy: DevelopmentCopy, redaction: RedactionFile, directory: string) {
  const { request, system, variables, onProgress, signal } = copy
  const target = await openTarget(request.from, variables)
  const source = { target, opener: openIdentities(request.identities) }
  const address = await findHistory(target, request)
  const selected = await selectRestore(source, address, NEWEST)
  const description = await copy.describe()
  const names = CopiedFiles.create(join(directory, COPY_FILES_FILE))
  let survey: BackupSurvey
  try {
    survey = await surveyBackup({ source, selected, files: names, signal })
  } finally {
    names.close()
  }
  const tables = new WorkspaceTables(description, survey.migrations)
  const plan = planRedaction(redaction, { declared: tables.manifests, shapes: survey.shapes })
  // The key is not stored: without it the hash of a guess cannot be computed.
  const redactor = new Redactor(plan, new KeyedValues(system.randomBytes(KEY_BYTES)))
  const path = join(directory, DOCUMENTS_FILE)
  const { hasFiles } = redaction
  const { sequence, ...copied } = await copyDocuments({
    source,
    selected,
    survey,
    path,
    decisionsPath: join(directory, 'decisions.db'),
    tables,
    redactor,
    hasFiles,
    onProgress,
    signal,
  })
  const record: CopyRecord = {
    from: request.from,
    identities: [...request.identities],
    ...addressOf(selected.backup),
    sequence: survey.sequence,
    atMicros: String(survey.atMicros),
    copiedAtMicros: String(system.nowMicros()),
    redaction: digestOf(request),
  }
  return { ...copied, record, sequence }
}

function digestOf({ redaction }: CopyRequest): string | null {
  return redaction === null ? null : sha256Hex(redaction)
}

/** A root that was served before may have states of Crons and the like, but no document. */
async function requireNoDocuments(path: string): Promise<void> {
  if (!existsSync(path)) return
  const store = await openSqliteDocuments(path, { mayBeNew: true })
  try {
    const snapshot = store.latestSequence
    for (let after: string | null = ''; after !== null; ) {
      const from: string = after
      const page = await store.versions({ after: from, snapshot, ...SCAN })
      const found = page.rows.find(({ id }) => !RESERVED_TABLES.includes(tableOf(id)))
      if (found !== undefined) throw notEmpty('it has documents of its own')
      after = page.after
    }
  } finally {
    await store.close()
  }
}

function notEmpty(detail: string): Fault {
  return new Fault('COPY_ROOT_NOT_EMPTY', { detail })
}
