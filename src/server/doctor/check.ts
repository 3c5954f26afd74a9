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
  evaluate(readings: Readings): CheckResult
  /** Returns a verdict with the description of this check. */
  result(verdict: Verdict): CheckResult
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
/** The command is one that makes the check where it is not skipped. */
export const skipped = (seen: string, command?: string): Verdict => ({
  status: 'skipped',
  seen,
  command,
})

/**
 * Declares a check of one reading. A reading that failed fails the check, unless `unread` says what
 * that means for it.
 */
export function check<T>(
  spec: Description & {
    readonly reads: (readings: Readings) => Reading<T>
    readonly evaluate: (value: T) => Verdict
    readonly unread?: (reason: string) => Verdict
  },
): Check {
  const { name, why, repair, reads, evaluate, unread = failed } = spec
  const result = ({ status, seen, command }: Verdict): CheckResult => {
    const isRed = status === 'warning' || status === 'failed'
    return { name, status, seen, why, command: command ?? (isRed ? repair : null) }
  }
  return {
    name,
    why,
    repair,
    result,
    evaluate(readings) {
      const reading = reads(readings)
      if ('skipped' in reading) return result(skipped(reading.skipped, reading.command))
      if ('value' in reading) return result(evaluate(reading.value))
      const verdict = unread(reading.failed)
      if (verdict.status !== 'failed') return result(verdict)
      return result({ ...verdict, command: verdict.command ?? reading.command })
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

/** Formats a number with its noun. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? noun : plural}`
}

const MIB = 1024 * 1024

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / MIB).toLocaleString('en-US')} MiB`
}

export function seconds(millis: number): string {
  return `${(millis / 1000).toFixed(1)} s`
}
