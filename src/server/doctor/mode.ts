/**
 * `svc-server doctor`: checks the installation, also a stopped or a damaged one, and changes
 * nothing. It holds the lock of a stopped root meanwhile; beside a running server it leaves out
 * what the lock protects.
 */
import { printable } from '../../client/visible-text.ts'
import { isFault } from '../../errors/fault.ts'
import { parseSettings, type ServerSettings } from '../../settings/settings.ts'
import { realSystem } from '../../system/system.ts'
import type { DoctorReport } from '../../wire/doctor/report.ts'
import { doctorExit, doctorLines } from '../../wire/doctor/report-text.ts'
import { JSON_OUTPUT } from '../command-line/arguments.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'
import { diagnose, diagnoseSettings } from './checks.ts'
import { readingOf, reasonOf } from './collect/reading-of.ts'
import { collect } from './collect.ts'
import { skip } from './readings.ts'

/** Returns 0 unless a check failed. */
export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const report = await examine(environment)
  if (args.includes(JSON_OUTPUT)) {
    io.out(`${JSON.stringify(report, null, 2)}\n`)
  } else {
    const lines = doctorLines(report, { styled: (_, text) => text, printable })
    io.out(`${lines.join('\n')}\n`)
  }
  return doctorExit(report)
}

async function examine(environment: ProcessEnvironment): Promise<DoctorReport> {
  let settings: ServerSettings
  try {
    settings = parseSettings(environment, 'doctor')
  } catch (error) {
    if (!isFault(error)) throw error
    return diagnoseSettings(reasonOf(error))
  }
  const system = realSystem()
  const { readSandbox } = await import('./collect/sandbox.ts')
  const readings = await collect({
    settings,
    environment,
    system,
    inside: null,
    readSandbox: async () =>
      settings.product === null
        ? skip('no Product root is configured')
        : readingOf(() => readSandbox(settings, system)),
  })
  return diagnose(readings)
}
