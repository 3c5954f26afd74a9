/** Runs the doctor inside the server, for an operator who asks through the management address. */
import type { ContainmentLevel } from '../../engine/runners/containment-checks.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import type { System } from '../../system/system.ts'
import type { DoctorReport } from '../../wire/doctor/report.ts'
import type { ProcessEnvironment } from '../io.ts'
import { FORWARDED } from '../peer-addresses.ts'
import { diagnose } from './checks.ts'
import { collect } from './collect.ts'
import { type Readings, skip } from './readings.ts'

export interface InsideOptions {
  readonly settings: ServerSettings
  readonly environment: ProcessEnvironment
  readonly system: System
  /** Null until the first runner has started. */
  readonly containment: ContainmentLevel | null
  readonly droppedRecords: number
  /** Headers of the request, which show what the proxy passes on. */
  readonly headers: Headers
}

export async function runInside(options: InsideOptions): Promise<DoctorReport> {
  const { settings, environment, system, containment, droppedRecords, headers } = options
  const forwarded = headers.get(FORWARDED)
  const readings = await collect({
    settings,
    environment,
    system,
    inside: {
      droppedRecords,
      forwarded: {
        tlsTerminated: settings.management.tlsTerminated,
        hasForwardedFor: forwarded !== null,
        hops: forwarded === null ? 0 : forwarded.split(',').length,
      },
    },
    readSandbox: async () => sandboxOf(containment, settings.sandbox === 'required'),
  })
  return diagnose(readings)
}

function sandboxOf(level: ContainmentLevel | null, isRequired: boolean): Readings['sandbox'] {
  if (level === null) return skip('no runner has started yet')
  return { value: { level, isRequired, detail: '' } }
}
