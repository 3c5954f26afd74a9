/** The document stores of a run, which can be restarted during it. */
import { ownCluster } from '../../testing/databases/cluster.ts'
import type { Environment } from '../harness.ts'

export interface Store {
  readonly environment: Environment
  /** Kills and restarts the store; null if it is part of the server. */
  readonly restart: (() => Promise<void>) | null
  dispose(): Promise<void>
}

export const STORES = { sqlite: sqliteStore, postgres: postgresStore }

async function sqliteStore(): Promise<Store> {
  return { environment: {}, restart: null, dispose: async () => undefined }
}

/** Starts a cluster of its own, so that no other test is affected when it is killed. */
async function postgresStore(): Promise<Store> {
  const cluster = await ownCluster()
  return {
    environment: { SERVICE_PLATFORM_DATABASE_URL: cluster.url },
    restart: async () => {
      await cluster.kill()
      await cluster.start()
    },
    dispose: () => cluster.dispose(),
  }
}
