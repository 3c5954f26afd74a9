/** Loads a bundle as a server does, so that a build finds what a publication would reject. */
import { createRunnerPool } from '../../engine/runners/runner-pool.ts'
import { runnerCommand } from '../../runner/command.ts'
import { runnerSpawner } from '../../runner/processes.ts'
import { realSystem } from '../../system/system.ts'
import { createLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { Bundle } from './bundles.ts'

/** Loads a bundle in a runner and returns its description. Throws as RunnerPool.describe does. */
export async function describeInSandbox(bundle: Bundle): Promise<unknown> {
  const system = realSystem()
  // No log: the Fault has the whole failure, and log lines would interleave with the output.
  const log = createLog({ system, sink: () => undefined })
  const spawn = runnerSpawner(runnerCommand())
  const metrics = new Metrics(system)
  const pool = createRunnerPool({ system, log, metrics, spawn, size: 1 })
  try {
    await pool.start({ sandbox: 'preferred' })
    return await pool.describe({ ...bundle, releaseId: system.ids.make('rel') })
  } finally {
    await pool.close()
  }
}
