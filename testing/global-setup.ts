/**
 * Starts one PostgreSQL for a whole test run when the first test asks for it, so that a run of unit
 * tests does not start one. Tests run in other processes and ask through a socket that only this
 * user can open.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { type Cluster, newClusterFolder, newPassword, startCluster } from './databases/cluster.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the socket that responds with the URL of the run's PostgreSQL. */
    postgresBroker: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const data = newClusterFolder()
  let cluster: Promise<Cluster> | undefined
  const broker = createServer((_request, response) => {
    cluster ??= startCluster({ dataDirectory: join(data, 'data'), password: newPassword() })
    cluster.then(
      (started) => response.end(started.url('postgres')),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  const path = join(folder, 'postgres.sock')
  await new Promise<void>((resolve) => broker.listen(path, resolve))
  project.provide('postgresBroker', path)

  return async () => {
    await new Promise<void>((resolve) => {
      broker.close(() => resolve())
      broker.closeAllConnections()
    })
    if (cluster !== undefined) {
      const started = await cluster.catch(() => null)
      await started?.stop()
    }
    rmSync(data, { recursive: true, force: true })
    rmSync(folder, { recursive: true, force: true })
  }
}
