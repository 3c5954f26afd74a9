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
  const lines = ORDER.flatMap((status) => {
    const label = styled(status, status.padEnd('skipped'.length))
    const found = checks.filter((each) => each.status === status)
    if (status === 'skipped') return skippedLines(found, label, printable)
    return found.flatMap((each) => {
      const head = `${label}  ${each.name.padEnd(width)}`
      return [`${head}  ${printable(each.seen)}`, ...explanation(each, printable).map(indented)]
    })
  })
  const counted = ORDER.map(
    (status) => `${checks.filter((each) => each.status === status).length} ${status}`,
  )
  return [...lines, '', `${checks.length} checks: ${counted.join(', ')}.`]

  function indented(line: string): string {
    return `${indent}${line}`
  }
}

const NAMES_CHARACTERS = 90

/** Formats skipped checks, those with one reason together. */
function skippedLines(
  checks: readonly CheckResult[],
  label: string,
  printable: (text: string) => string,
): string[] {
  const indent = ' '.repeat('skipped'.length + 2)
  const reasons = new Map<string, string[]>()
  for (const { name, seen, command } of checks) {
    const reason = command === null ? seen : `${seen}: ${command}`
    reasons.set(reason, [...(reasons.get(reason) ?? []), name])
  }
  return [...reasons].flatMap(([reason, names]) => [
    `${label}  ${names.length} ${names.length === 1 ? 'check' : 'checks'}: ${printable(reason)}`,
    ...wrapped(names).map((line) => `${indent}${line}`),
  ])
}

function wrapped(names: readonly string[]): string[] {
  const lines: string[] = []
  for (const name of names) {
    const last = lines.at(-1)
    const isFull = last === undefined || last.length + name.length > NAMES_CHARACTERS
    if (isFull) lines.push(name)
    else lines[lines.length - 1] = `${last}, ${name}`
  }
  return lines
}

function explanation(
  { status, why, command }: CheckResult,
  printable: (text: string) => string,
): string[] {
  if (status === 'ok') return []
  return [why, ...(command === null ? [] : [`Repair: ${printable(command)}`])]
}
