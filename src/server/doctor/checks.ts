/**
 * The one table of the doctor's checks. The report, and the reference of `svc docs doctor`, are
 * made of it.
 */
import type { DoctorReport } from '../../wire/doctor/report.ts'
import { type Check, failed, skipped } from './check.ts'
import { BACKUP_CHECKS } from './checks/backup-checks.ts'
import { MACHINE_CHECKS } from './checks/machine-checks.ts'
import { POSTGRES_CHECKS } from './checks/postgres-checks.ts'
import { ROOT_CHECKS } from './checks/root-checks.ts'
import { SETTINGS_CHECKS, SETTINGS_VALID } from './checks/settings-checks.ts'
import type { Readings } from './readings.ts'

export interface CheckArea {
  readonly title: string
  readonly checks: readonly Check[]
}

export const AREAS: readonly CheckArea[] = [
  { title: 'Settings, addresses and certificates', checks: SETTINGS_CHECKS },
  { title: 'The machine', checks: MACHINE_CHECKS },
  { title: 'PostgreSQL', checks: POSTGRES_CHECKS },
  { title: 'The Product root', checks: ROOT_CHECKS },
  { title: 'Backups', checks: BACKUP_CHECKS },
]

export const CHECKS: readonly Check[] = AREAS.flatMap(({ checks }) => checks)

/** Evaluates all readings, in the order of the table. */
export function diagnose(readings: Readings): DoctorReport {
  return { version: 1, checks: CHECKS.map((check) => check.evaluate(readings)) }
}

/** Reports settings that cannot be read: without them not even the root can be found. */
export function diagnoseSettings(reason: string): DoctorReport {
  const other = skipped('the settings cannot be read')
  const verdictOn = ({ name }: Check) => (name === SETTINGS_VALID ? failed(reason) : other)
  return { version: 1, checks: CHECKS.map((check) => check.result(verdictOn(check))) }
}
