/** Starts one runner of Functions and lets it try the known escapes. */
import { createRunnerPool } from '../../../engine/runners/runner-pool.ts'
import { isFault } from '../../../errors/fault.ts'
import { runnerCommand } from '../../../runner/command.ts'
import { runnerSpawner } from '../../../runner/processes.ts'
import type { ServerSettings } from '../../../settings/settings.ts'
import type { System } from '../../../system/system.ts'
import { createLog } from '../../../telemetry/log.ts'
import { Metrics } from '../../../telemetry/metrics/metrics.ts'
import type { SandboxReading } from '../readings.ts'

const MISSING = /missing: ([^."]+)/

export async function readSandbox(
  { sandbox }: Pick<ServerSettings, 'sandbox'>,
  system: System,
): Promise<SandboxReading> {
  let said = ''
  const log = createLog({
    system,
    level: 'warn',
    sink: (text) => {
      said += text
    },
  })
  const isRequired = sandbox === 'required'
  const pool = createRunnerPool({
    system,
    log,
    metrics: new Metrics(system),
    spawn: runnerSpawner(runnerCommand()),
  })
  try {
    const level = await pool.start({ sandbox: 'preferred' })
    const missing = MISSING.exec(said)?.[1]
    return { level, isRequired, detail: missing === undefined ? '' : `missing ${missing}` }
  } catch (error) {
    if (!isFault(error, 'SERVER_SANDBOX_UNAVAILABLE')) throw error
    // The server does not start with an escape, whether or not the sandbox is required.
    return { level: 'none', isRequired: true, detail: error.detail ?? '' }
  } finally {
    await pool.close()
  }
}
