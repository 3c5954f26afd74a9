/** The steps of one request as a table with bars: when each begins and how long it takes. */
import { shellQuoted } from '../../value/shell/shell-words.ts'
import type { LogRecord } from '../../wire/logs.ts'
import { durationText } from '../formats.ts'
import { Section } from '../parts/page.tsx'
import { Block, Identifier, Shown } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { svcCommand } from '../state.ts'
import { requestSteps, type Step } from './request-steps.ts'

/** Units of the width of a bar. */
const WIDTH = 1_000
/** Width of a moment, so that it can be seen. */
const MOMENT = 8

export function RequestTimeline({
  requestId,
  records,
}: {
  requestId: string
  records: readonly LogRecord[]
}) {
  const { steps, totalMicros, traceIds } = requestSteps(records)
  if (steps.length === 0) return null
  return (
    <Section title="Steps in time">
      <Table
        label="Steps in time"
        rows={steps}
        keyOf={({ key }) => key}
        columns={[
          { head: 'Step', cell: (step) => <Name step={step} /> },
          {
            head: 'Begins after',
            isNumber: true,
            cell: ({ beginsMicros }) => durationText(beginsMicros),
          },
          {
            head: 'Takes',
            isNumber: true,
            cell: ({ takesMicros }) => (takesMicros === null ? '–' : durationText(takesMicros)),
          },
          { head: 'Time', cell: (step) => <Bar step={step} totalMicros={totalMicros} /> },
        ]}
      />
      {traceIds.map((id) => (
        <p key={id} class="facts">
          <span>
            The server exports this trace: <Identifier id={id} />
          </span>
        </p>
      ))}
      <p class="quiet">The records on the command line:</p>
      <Block text={svcCommand(`logs --request ${shellQuoted(requestId)}`)} label="Command" />
    </Section>
  )
}

function Name({ step: { name, message, isInside, level } }: { step: Step }) {
  return (
    <span class={isInside ? 'inside' : undefined}>
      <strong class={level === 'error' || level === 'warn' ? 'bad' : undefined}>
        <Shown text={name} />
      </strong>{' '}
      <Shown text={message} />
    </span>
  )
}

/** The columns beside it have the same as numbers. */
function Bar({ step, totalMicros }: { step: Step; totalMicros: number }) {
  const unit = WIDTH / Math.max(totalMicros, 1)
  const width = Math.max((step.takesMicros ?? 0) * unit, MOMENT)
  const x = Math.min(step.beginsMicros * unit, WIDTH - MOMENT)
  return (
    <svg
      class="bar"
      viewBox={`0 0 ${WIDTH} 10`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <rect x={x} y="1" width={Math.min(width, WIDTH - x)} height="8" />
    </svg>
  )
}
