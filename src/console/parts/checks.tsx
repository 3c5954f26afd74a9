/** Results of the doctor: what a check saw, why it matters, and what repairs it. */
import type { CheckResult, CheckStatus } from '../../wire/doctor/report.ts'
import { Badge } from './page.tsx'
import { Block, Shown } from './shown.tsx'

/** Problems first. */
const ORDER: readonly CheckStatus[] = ['failed', 'warning', 'skipped', 'ok']

export function sortedChecks(checks: readonly CheckResult[]): CheckResult[] {
  return checks.toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status))
}

export function Checks({ checks }: { checks: readonly CheckResult[] }) {
  return (
    <ul class="log">
      {sortedChecks(checks).map((each) => (
        <Check key={each.name} check={each} />
      ))}
    </ul>
  )
}

function Check({ check: { name, status, seen, why, command } }: { check: CheckResult }) {
  const isProblem = status === 'failed' || status === 'warning'
  const head = (
    <>
      <Badge text={status} />{' '}
      <strong>
        <Shown text={name} />
      </strong>{' '}
      <Shown text={seen} max={2_000} />
    </>
  )
  const explanation = (
    <>
      <p>
        <Shown text={why} max={2_000} />
      </p>
      {command !== null && <Block text={command} label={`Command of ${name}`} />}
    </>
  )
  return (
    <li>
      {isProblem ? (
        <>
          <div>{head}</div>
          {explanation}
        </>
      ) : (
        <details>
          <summary>{head}</summary>
          {explanation}
        </details>
      )}
    </li>
  )
}
