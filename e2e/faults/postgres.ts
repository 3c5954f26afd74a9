/** Faults of a PostgreSQL that only one test uses. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { execute, type OwnCluster } from '../../testing/databases/cluster.ts'

/** A hot standby: it answers reads and rejects writes until it is promoted. */
export const standby = {
  async begin(cluster: OwnCluster): Promise<void> {
    await cluster.stop()
    writeFileSync(join(cluster.folder, 'data/standby.signal'), '')
    await cluster.start()
  },
  async promote(cluster: OwnCluster): Promise<void> {
    await execute(cluster.url, 'select pg_promote()')
  },
}

/** Opens connections until PostgreSQL accepts no more, and returns what closes them. */
export async function withoutConnections(cluster: OwnCluster): Promise<{ end(): Promise<void> }> {
  const clients: Client[] = []
  for (;;) {
    const client = new Client({ connectionString: cluster.url })
    client.on('error', () => undefined)
    try {
      await client.connect()
    } catch (error) {
      const { code } = error as { code?: string }
      // too_many_connections
      if (code !== '53300') throw error
      break
    }
    clients.push(client)
  }
  return {
    end: async () => {
      await Promise.all(clients.map((client) => client.end()))
    },
  }
}
