/**
 * `svc-server doctor`: checks the installation, also a stopped or a damaged one, and changes
 * nothing. It holds the lock of a stopped root meanwhile; beside a running server it leaves out
 * what the lock protects.
 */
import { printable } from '../../client/visible-text.ts'
import { isFault } from '../../errors/fault.ts'
import { parseSettings, type ServerSettings } from '../../settings/settings.ts'
import { realSystem } from '../../system/system.ts'
import { doctorExit, doctorLines } from '../../wire/doctor/report-text.ts'
import { JSON_OUTPUT } from '../arguments.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'
import { diagnose } from './checks.ts'
import { reasonOf } from './collect/reading-of.ts'
import { collect } from './collect.ts'
import { type Readings, skip } from './readings.ts'

/** Returns 0 unless a check failed. */
export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const report = diagnose(await readAll(environment))
  if (args.includes(JSON_OUTPUT)) {
    io.out(`${JSON.stringify(report, null, 2)}\n`)
  } else {
    const lines = doctorLines(report, { styled: (_, text) => text, printable })
    io.out(`${lines.join('\n')}\n`)
  }
  return doctorExit(report)
}

async function readAll(environment: ProcessEnvironment): Promise<Readings> {
  let settings: ServerSettings
  try {
    settings = parseSettings(environment, 'doctor')
  } catch (error) {
    if (!isFault(error)) throw error
    return withoutSettings(reasonOf(error))
  }
  const system = realSystem()
  const { readSandbox } = await import('./collect/sandbox.ts')
  return collect({
    settings,
    environment,
    system,
    inside: null,
    readSandbox: () => readSandbox(settings, system),
  })
}

/** Skips all but the settings: without them not even the place of the root is known. */
function withoutSettings(reason: string): Readings {
  const none = skip('the settings cannot be read')
  return new Proxy({ configuration: { failed: reason } } as unknown as Readings, {
    get: (readings, name) => (name in readings ? readings[name as keyof Readings] : none),
  })
}
