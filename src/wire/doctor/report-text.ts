/** The report of the doctor as lines for people: failures last, and explained. */
import { KINDS } from '../../errors/kinds.ts'
import type { CheckResult, CheckStatus, DoctorReport } from './report.ts'

/** The failed checks are the last lines on a terminal. */
const ORDER: readonly CheckStatus[] = ['ok', 'skipped', 'warning', 'failed']

/** Returns the exit code of a command that prints the report (contract/wire.md, Doctor). */
export function doctorExit({ checks }: DoctorReport): number {
  return checks.some(({ status }) => status === 'failed') ? KINDS.conflict.exit : 0
}

/** Formats the report. `styled` marks a status, and `printable` escapes control characters. */
export function doctorLines(
  { checks }: DoctorReport,
  {
    styled,
    printable,
  }: {
    readonly styled: (status: CheckStatus, text: string) => string
    readonly printable: (text: string) => string
  },
): string[] {
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  const indent = ' '.repeat('skipped'.length + width + 4)
  const lines = ORDER.flatMap((status) =>
    checks
      .filter((each) => each.status === status)
      .flatMap((each) => {
        const label = styled(status, status.padEnd('skipped'.length))
        const head = `${label}  ${each.name.padEnd(width)}`
        return [`${head}  ${printable(each.seen)}`, ...explanation(each, printable).map(indented)]
      }),
  )
  const counted = ORDER.map(
    (status) => `${checks.filter((each) => each.status === status).length} ${status}`,
  )
  return [...lines, '', `${checks.length} checks: ${counted.join(', ')}.`]

  function indented(line: string): string {
    return `${indent}${line}`
  }
}

function explanation(
  { status, why, command }: CheckResult,
  printable: (text: string) => string,
): string[] {
  if (status === 'ok' || status === 'skipped') return []
  return [why, ...(command === null ? [] : [`Repair: ${printable(command)}`])]
}
