/** Records of the log on the pages that show them. */
import type { LogRecord } from '../../wire/logs.ts'
import { timeText } from '../formats.ts'
import { hrefOf } from '../state.ts'
import { Badge } from './page.tsx'
import { Block, Shown } from './shown.tsx'

/** Records with all their facts, the newest first. `records` has the oldest first. */
export function RecordList({ records }: { records: readonly LogRecord[] }) {
  return (
    <ul class="log">
      {records.toReversed().map((record) => (
        <li key={record.cursor}>
          <div class="line">
            <time>{timeText(record.atMicros)}</time>
            <Badge text={record.level} />
            <span class="text">
              <Shown text={record.message} max={400} />
            </span>
            {record.requestId !== undefined && (
              <a href={hrefOf('logs', { request: record.requestId })}>Records of the request</a>
            )}
          </div>
          <RecordDetails record={record} />
        </li>
      ))}
    </ul>
  )
}

/** The fields that the line above has already. */
const IN_LINE = ['cursor', 'atMicros', 'level', 'message', 'fields', 'projectId', 'environmentId']

/** All facts of a record; texts of several lines, such as a stack, stand in full. */
export function RecordDetails({ record }: { record: LogRecord }) {
  const { fields = {}, ...own } = record
  const facts = [
    ...Object.entries(own).filter(([name]) => !IN_LINE.includes(name)),
    ...Object.entries(fields),
  ]
  return (
    <>
      {record.message.length > 400 && <Block text={record.message} label="Message" />}
      <dl>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
    </>
  )
}

function Fact({ name, value }: { name: string; value: unknown }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return (
    <>
      <dt>
        <Shown text={name} max={80} />
      </dt>
      <dd>
        {text.includes('\n') ? (
          <Block text={text} label={name} />
        ) : (
          <Shown text={text} max={2_000} />
        )}
      </dd>
    </>
  )
}
