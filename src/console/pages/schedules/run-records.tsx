/** The records of the log of one scheduled run. */
import { idMillis, isId } from '../../../value/ids.ts'
import { useLoaded } from '../../loading.ts'
import { RecordList } from '../../parts/log-records.tsx'
import { Empty, Reload, Result, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { call } from '../../requests.ts'
import { environmentId, hrefOf } from '../../state.ts'

/** Records of the Function that are looked at, the newest since the run was scheduled. */
const RECORDS_MAX = 1_000

export function RunRecords({ scheduledId, name }: { scheduledId: string; name: string }) {
  const id = environmentId.value
  const records = useLoaded(`${id} ${scheduledId} ${name}`, async () => {
    const millis = isId('sch', scheduledId) ? idMillis(scheduledId) : 0
    const since = String(BigInt(Math.max(0, millis - 60_000)) * 1_000n)
    const query = { function: name, since, limit: RECORDS_MAX }
    const { items } = await call('listLogs', id, { query })
    return items.filter((record) => record.scheduledId === scheduledId)
  })
  return (
    <Section title="Records of a run" actions={<Reload of={[records]} />}>
      <p>
        <a href={hrefOf('schedules')}>All Crons and scheduled Functions</a>
      </p>
      <p class="facts">
        <Identifier id={scheduledId} />
        <Shown text={name} />
      </p>
      <Result of={records}>
        {(found) =>
          found.length === 0 ? (
            <Empty>
              The newest {RECORDS_MAX.toLocaleString('en')} records of the Function have none of
              this run.
            </Empty>
          ) : (
            <RecordList records={found} />
          )
        }
      </Result>
    </Section>
  )
}
