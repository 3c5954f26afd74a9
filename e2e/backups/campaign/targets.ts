/** The places of the backups of a campaign, which can be killed and started again. */
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../../testing/servers/ports.ts'
import { type Supervised, superviseProcess } from '../../../testing/servers/supervisor.ts'
import type { Environment } from '../../harness.ts'

export interface CampaignTarget {
  /** The settings of a server that writes there, and of a restore. */
  readonly environment: Environment
  /** The argument of `svc-server restore --from`. */
  readonly from: string
  /** The directory in which the files of the backups are while it answers. */
  readonly files: string
  /** Makes it unreachable at once. */
  kill(): Promise<void>
  start(): Promise<void>
  dispose(): Promise<void>
}

const PROGRAM = join(import.meta.dirname, '../../../testing/servers/s3-files.ts')

export const TARGETS = { bucket: openBucket, directory: openDirectory }
export type TargetKind = keyof typeof TARGETS

/** A directory that goes away as a file system that is no longer mounted. */
async function openDirectory(directory: string): Promise<CampaignTarget> {
  const path = join(directory, 'target')
  const away = join(directory, 'target-away')
  mkdirSync(path)
  return {
    environment: { SERVICE_BACKUP_DIRECTORY: path },
    from: path,
    files: path,
    kill: async () => renameSync(path, away),
    start: async () => renameSync(away, path),
    dispose: async () => undefined,
  }
}

/** A store that is a process of its own. */
async function openBucket(directory: string): Promise<CampaignTarget> {
  const port = await freePort()
  const path = join(directory, 'bucket')
  mkdirSync(path)
  let store: Supervised
  const start = async () => {
    store = superviseProcess([process.execPath, PROGRAM, path, String(port)], {
      signal: 'TERM',
      directory,
      environment: {},
    })
    store.stderr.resume()
    await new Promise<void>((resolve, reject) => {
      store.stdout.once('data', () => resolve())
      void store.ended.then((status) => reject(new Error(`the store ended with ${status}`)))
    })
  }
  await start()
  return {
    environment: {
      SERVICE_BACKUP_S3_ENDPOINT: `http://127.0.0.1:${port}`,
      SERVICE_BACKUP_S3_BUCKET: 'backups',
      SERVICE_BACKUP_S3_PREFIX: 'svc/',
      SERVICE_BACKUP_S3_ACCESS_KEY_ID: 'id',
      SERVICE_BACKUP_S3_SECRET_ACCESS_KEY: 'secret',
    },
    from: 's3://backups/svc',
    files: path,
    kill: async () => {
      store.kill()
      await store.ended
    },
    start,
    dispose: async () => {
      store.kill()
      await store.ended
    },
  }
}
