/** Backups of a gateway: the routes in process, and the archives as a restore reads them. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Opener } from '../../src/backups/format/age-files.ts'
import { type VerifiedBackup, verifyBackup } from '../../src/backups/format/backup-reader.ts'
import { listEnvironments, listHistories, selectBackup } from '../../src/backups/format/chain.ts'
import { Backups } from '../../src/backups/service/backups.ts'
import { DirectoryTarget } from '../../src/backups/targets/directory.ts'
import type { Database } from '../../src/database/database.ts'
import { type BackupsApp, backupRoutes } from '../../src/http/management/backups.ts'
import { realSystem } from '../../src/system/system.ts'
import { CAPABILITIES } from '../../src/value/capabilities.ts'
import type { TestGateway } from '../gateways.ts'
import { type TestManagement, testManagement } from '../openapi/checked-origins.ts'
import { unstoredSessions } from '../operators.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from '../product-roots.ts'
import { actorWith } from '../products.ts'

interface BackupParts {
  readonly identity: Database
  readonly recipients?: readonly string[] | null
  readonly freeFloorBytes?: number
}

/** Opens the backups of a gateway and an identity database. */
export function openTestBackups(
  { harness, engine, files, store, metrics }: TestGateway,
  { identity, recipients = null, freeFloorBytes = 0 }: BackupParts,
): Backups {
  return new Backups({
    server: {
      system: realSystem(),
      store,
      holdSnapshot: () => engine.commits.holdSnapshot(),
      holdFiles: () => files.collection.pause(),
      root: harness.root,
      blobs: files.blobs,
      identity,
    },
    log: harness.log.log,
    metrics,
    recipients,
    freeFloorBytes,
  })
}

const BASE = `/v1/projects/${PROJECT_ID}/environments/${ENVIRONMENT_ID}/backups`
const TOKEN = `rk_at_v1_${'a'.repeat(43)}`

interface Sent {
  readonly body?: object
  readonly operationId?: string
}

/** The routes of backups, called by an operator who may do everything. */
export class BackupRoutes {
  readonly downloads = { open: 0 }
  readonly #management: TestManagement

  constructor({ harness }: TestGateway, backups: Backups | null) {
    this.#management = testManagement<BackupsApp>({
      app: {
        product: harness.product,
        backups,
        backupDownloads: this.downloads,
        environment: harness.root.descriptor,
        sessions: unstoredSessions(async () => ({
          ...harness.actor,
          grants: actorWith(CAPABILITIES).grants,
        })),
      },
      system: harness.system,
      log: harness.log.log,
      routes: backupRoutes,
    })
  }

  send(method: string, path = '', { body, operationId }: Sent = {}): Promise<Response> {
    return this.#management.request(BASE + path, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(operationId !== undefined && { 'idempotency-key': operationId }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }
}

/** Extracts an archive as tar does, and reads the backup as a restore would. */
export async function verifyArchive(
  archive: Uint8Array,
  identity: string,
): Promise<VerifiedBackup & { readonly sequence: number }> {
  const directory = mkdtempSync(join(tmpdir(), 'archive-'))
  try {
    const extracted = spawnSync('tar', ['-x', '-C', directory], { input: archive })
    expect([extracted.status, String(extracted.stderr)]).toEqual([0, ''])
    const target = new DirectoryTarget(directory)
    const [environmentId] = await listEnvironments(target)
    const [historyId] = await listHistories(target, environmentId!)
    const backup = await selectBackup(target, {
      environmentId: environmentId!,
      historyId: historyId!,
    })
    const verified = await verifyBackup({ target, opener: new Opener([identity]) }, backup)
    return { ...verified, sequence: backup.base.toSequence }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
