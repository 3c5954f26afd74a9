/** Schedules: the Crons in force, and Functions that are scheduled, run or have ended. */
import { Page } from '../../parts/page.tsx'
import { may, route } from '../../state.ts'
import { CronsSection } from './crons.tsx'
import { RunRecords } from './run-records.tsx'
import { ScheduledSection } from './scheduled.tsx'

export function SchedulesPage() {
  const { parameters } = route.value
  const scheduledId = parameters.get('run')
  const name = parameters.get('function')
  return (
    <Page title="Schedules">
      {scheduledId !== null && name !== null && may('logs:read') ? (
        <RunRecords key={scheduledId} scheduledId={scheduledId} name={name} />
      ) : (
        <>
          {may('cron:read') && <CronsSection />}
          {may('schedules:read') && <ScheduledSection />}
        </>
      )}
    </Page>
  )
}
