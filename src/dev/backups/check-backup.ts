/** Reads a backup as a restore does, or restores it into a place that is removed afterwards. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BackupSource } from '../../backups/format/backup-reader.ts'
import type { HistoryAddress } from '../../backups/format/chain.ts'
import { NEWEST, selectRestore } from '../../backups/restore/goals.ts'
import { type RestoreResult, restoreBackup } from '../../backups/restore/restore.ts'
import { verifyRestore } from '../../backups/restore/verified-backup.ts'
import type { BackupCheckRequest, CheckedBackup } from '../../client/development/workspace-tools.ts'
import { Database } from '../../database/database.ts'
import { removeIdentityTables } from '../../database/identity/restored-rows.ts'
import { openBlobs } from '../../server/blobs.ts'
import { findHistory, openIdentities, openTarget } from '../../server/restore/sources.ts'
import { parseDatabaseUrl } from '../../settings/addresses.ts'
import { fault } from '../../settings/sources.ts'
import { realSystem } from '../../system/system.ts'
import { Secret } from '../../value/secret.ts'

export async function checkBackup(request: BackupCheckRequest): Promise<CheckedBackup> {
  const opener = openIdentities(request.identities)
  const target = await openTarget(request.from, request.variables)
  const address = await findHistory(target, request)
  const source = { target, opener }
  return request.restores ? rehearse(request, source, address) : read(request, source, address)
}

async function read(
  { onProgress }: BackupCheckRequest,
  source: BackupSource,
  address: HistoryAddress,
): Promise<CheckedBackup> {
  const selected = await selectRestore(source, address, NEWEST)
  const verified = await verifyRestore(source, selected, onProgress)
  verified.contents.close()
  const { sequence, atMicros, segments, missingFiles } = verified
  const { blobs: files, blobBytes: fileBytes } = verified
  const read = { sequence, atMicros, segments, files, fileBytes, missingFiles }
  return { ...address, ...read, restored: null }
}

/** Restores the newest state. Files are stored in the temporary directory as well. */
async function rehearse(
  { databaseUrl, onProgress }: BackupCheckRequest,
  source: BackupSource,
  address: HistoryAddress,
): Promise<CheckedBackup> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-rehearsal-'))
  const identity = databaseUrl === null ? null : openIdentity(databaseUrl)
  const root = join(directory, 'root')
  try {
    const storage = { freeFloorBytes: 0, s3: null }
    const { environmentId } = address
    const result = await restoreBackup({
      source,
      address,
      goal: NEWEST,
      destination: { root, identity, documents: null, system: realSystem() },
      openBlobs: () => openBlobs({ rootPath: root, environmentId, storage, isFilled: true }),
      hasBlobsInRoot: true,
      revokesCredentials: true,
      restoresPeppers: false,
      onProgress,
    })
    if (identity !== null) await removeIdentityTables(identity)
    return { ...address, ...reportOf(result) }
  } finally {
    await identity?.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

function reportOf(result: RestoreResult): Omit<CheckedBackup, keyof HistoryAddress> {
  const { sequence, atMicros, segments, files, fileBytes, missingFiles } = result
  const { documents, merkle } = result
  const read = { sequence, atMicros, segments, files, fileBytes, missingFiles }
  return { ...read, restored: { documents, merkle } }
}

function openIdentity(url: string): Database {
  const address = parseDatabaseUrl(new Secret(url))
  if (address !== null) return new Database({ url: address.url, connectionsMax: 2 })
  const rule = 'postgres://user:password@host:port/database'
  throw fault('SERVER_DATABASE_URL_INVALID', '--database', rule)
}
