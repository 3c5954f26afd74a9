/** Doctor: the server checks itself, its machine and its stores; problems come first. */
import type { CheckStatus, DoctorReport } from '../../wire/doctor/report.ts'
import { useLoaded } from '../loading.ts'
import { Checks } from '../parts/checks.tsx'
import { Badge, Empty, Page, Result, Section } from '../parts/page.tsx'
import { Block } from '../parts/shown.tsx'
import { call } from '../requests.ts'
import { environmentId, svcCommand } from '../state.ts'

const COUNTED: readonly CheckStatus[] = ['failed', 'warning', 'ok', 'skipped']

export function DoctorPage() {
  const id = environmentId.value
  const report = useLoaded(id, () => call('runDoctor', id))
  return (
    <Page
      title="Doctor"
      actions={
        <button type="button" disabled={report.isLoading} onClick={report.reload}>
          Run again
        </button>
      }
    >
      {report.isLoading && <p class="quiet">The server runs its checks, which takes seconds …</p>}
      <Result of={report}>{(known) => <Report report={known} />}</Result>
    </Page>
  )
}

function Report({ report: { checks } }: { report: DoctorReport }) {
  const having = (...statuses: readonly CheckStatus[]) =>
    checks.filter(({ status }) => statuses.includes(status))
  const problems = having('failed', 'warning')
  const skipped = having('skipped')
  return (
    <>
      <p class="facts">
        {COUNTED.map((status) => (
          <span key={status}>
            {having(status).length} <Badge text={status} />
          </span>
        ))}
      </p>
      <Section title="Problems">
        {problems.length === 0 ? (
          <Empty>No check failed or warns.</Empty>
        ) : (
          <Checks checks={problems} />
        )}
      </Section>
      <Section title="Passed">
        <Checks checks={having('ok')} />
      </Section>
      {skipped.length > 0 && (
        <Section title="Not checked">
          <Checks checks={skipped} />
        </Section>
      )}
      <Section title="On the command line">
        <Block text={svcCommand('doctor')} label="Command" />
        <p class="hint">
          On the machine of the server, while it is stopped, svc-server doctor also reads the large
          files that a running server leaves out.
        </p>
      </Section>
    </>
  )
}
