/** A check of the doctor: its description, and a pure function of the readings. */
import type { CheckResult, CheckStatus } from '../../wire/doctor/report.ts'
import type { Reading, Readings } from './readings.ts'

export interface Verdict {
  readonly status: CheckStatus
  readonly seen: string
  /** A command in place of that of the description. */
  readonly command?: string | undefined
}

interface Description {
  /** Lower case, with dashes. */
  readonly name: string
  /** The reason why a failure matters. */
  readonly why: string
  /** The command that repairs it; capitals stand for what the report fills in. */
  readonly repair: string
}

export interface Check extends Description {
  judge(readings: Readings): CheckResult
}

/** A verdict of each status. */
export const ok = (seen: string): Verdict => ({ status: 'ok', seen })
export const warning = (seen: string, command?: string): Verdict => ({
  status: 'warning',
  seen,
  command,
})
export const failed = (seen: string, command?: string): Verdict => ({
  status: 'failed',
  seen,
  command,
})
export const skipped = (seen: string): Verdict => ({ status: 'skipped', seen })

/**
 * Declares a check of one reading. A reading that failed fails the check, unless `unread` says what
 * that means for it.
 */
export function check<T>(
  spec: Description & {
    readonly reads: (readings: Readings) => Reading<T>
    readonly judge: (value: T) => Verdict
    readonly unread?: (reason: string) => Verdict
  },
): Check {
  const { name, why, repair, reads, judge, unread = failed } = spec
  return {
    name,
    why,
    repair,
    judge(readings) {
      const reading = reads(readings)
      const { status, seen, command } =
        'skipped' in reading
          ? skipped(reading.skipped)
          : 'failed' in reading
            ? unread(reading.failed)
            : judge(reading.value)
      const isRed = status === 'warning' || status === 'failed'
      return { name, status, seen, why, command: isRed ? (command ?? repair) : (command ?? null) }
    },
  }
}

/** Skips a check of a reading whose failure another check reports. */
export const notRead = (reason: string): Verdict => skipped(`not read: ${reason}`)

const SHOWN = 3

/** Names the first entries of a list, and the number of the others. */
export function listed(entries: readonly string[]): string {
  const others = entries.length - SHOWN
  const shown = entries.slice(0, SHOWN).join(', ')
  return others > 0 ? `${shown} and ${others} more` : shown
}

const MIB = 1024 * 1024

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / MIB).toLocaleString('en-US')} MiB`
}

export function seconds(millis: number): string {
  return `${(millis / 1000).toFixed(1)} s`
}

/** Quotes a path for a shell. */
export function shellPath(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
