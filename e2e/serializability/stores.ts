/** The document stores of a run, which can be restarted during it. */
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Cluster,
  type ClusterOptions,
  newPassword,
  startCluster,
} from '../../build/testing/databases/cluster.ts'
import { postgresAccount, sharedTemporaryFolder } from '../../build/testing/servers/binaries.ts'
import type { Environment } from '../harness.ts'

export interface Store {
  readonly environment: Environment
  /** Kills and restarts the store; null if it is part of the server. */
  readonly restart: (() => Promise<void>) | null
  dispose(): Promise<void>
}

const START_ATTEMPTS = 100

export const STORES = { sqlite: sqliteStore, postgres: postgresStore }

async function sqliteStore(): Promise<Store> {
  return { environment: {}, restart: null, dispose: async () => undefined }
}

/** Starts a cluster of its own, so that no other test is affected when it is killed. */
async function postgresStore(): Promise<Store> {
  const folder = mkdtempSync(join(sharedTemporaryFolder(), 'svc-serializability-'))
  const account = postgresAccount()
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid ?? account.uid)
  const options = { dataDirectory: join(folder, 'data'), password: newPassword() }
  let cluster = await startCluster(options)
  const { port } = cluster
  return {
    environment: { SERVICE_PLATFORM_DATABASE_URL: cluster.url('postgres') },
    restart: async () => {
      cluster.kill()
      await cluster.ended
      cluster = await startAgain({ ...options, preferredPort: port })
      if (cluster.port !== port) throw new Error(`port ${port} was taken from PostgreSQL`)
    },
    dispose: async () => {
      await cluster.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Retries the start, since sessions outlive their killed parent briefly and lock the data. */
async function startAgain(options: ClusterOptions): Promise<Cluster> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await startCluster(options)
    } catch (error) {
      if (attempts === START_ATTEMPTS) throw error
      await delay(100)
    }
  }
}
