/** The Crons in force: their times and runs, whether they are active, and runs by hand. */
import { timesText } from '../../../value/scheduling/crons.ts'
import type { CronList } from '../../../wire/crons.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Empty, Reload, Result, Section } from '../../parts/page.tsx'
import { Identifier, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { call, nowMicros } from '../../requests.ts'
import { ask, environmentId, hrefOf, may, svcCommand } from '../../state.ts'
import { runOfCron, type Work } from './pieces.ts'

type Cron = CronList['crons'][number]

const CRONS_MS = 5_000
/** Crons whose newest run is looked up, one request for each. */
const OUTCOMES_MAX = 50

export function CronsSection() {
  const id = environmentId.value
  const crons = useLoaded(id, (background) => call('listCrons', id, {}, { background }), {
    everyMs: CRONS_MS,
  })
  return (
    <Section title="Crons in force" actions={<Reload of={[crons]} />}>
      <Result of={crons}>
        {(list) =>
          list.crons.length === 0 ? (
            <Empty>
              <Identifier id={list.releaseId} /> declares no Cron. Declare one in crons.ts, then
              release.
            </Empty>
          ) : (
            <>
              <p class="quiet">
                The Release <Identifier id={list.releaseId} /> declares them. Activation stays for
                later Releases.
              </p>
              <Crons crons={list.crons} reload={crons.reload} />
            </>
          )
        }
      </Result>
    </Section>
  )
}

function Crons({ crons, reload }: { crons: readonly Cron[]; reload: () => void }) {
  const hasOutcome = new Set(crons.slice(0, OUTCOMES_MAX).map(({ name }) => name))
  return (
    <Table
      label="Crons"
      rows={crons}
      keyOf={({ name }) => name}
      columns={[
        { head: 'Cron', cell: ({ name }) => <Shown text={name} /> },
        {
          head: 'Times',
          cell: ({ every, ...cron }) => (
            <Shown text={timesText({ ...cron, everyMillis: every?.milliseconds ?? null })} />
          ),
        },
        { head: 'Function', cell: (cron) => <Shown text={cron.function} /> },
        { head: 'Activation', cell: ({ activation }) => <Badge text={activation} /> },
        { head: 'Next run', cell: ({ nextRunAtMicros }) => timeText(nextRunAtMicros, 'none') },
        {
          head: 'Last run',
          cell: (cron) => (
            <>
              {timeText(cron.lastRunAtMicros)}{' '}
              {hasOutcome.has(cron.name) && may('schedules:read') && <Outcome cron={cron} />}
            </>
          ),
        },
        {
          head: 'Change',
          cell: (cron) => may('cron:activate') && <Acts cron={cron} reload={reload} />,
        },
      ]}
    />
  )
}

/** The state of the newest run, where the scheduled Functions of the last 7 days have it. */
function Outcome({ cron }: { cron: Cron }) {
  const id = environmentId.value
  const { lastRunAtMicros } = cron
  const run = useLoaded(
    `${id} ${cron.name} ${lastRunAtMicros}`,
    async (background) => {
      const found = lastRunAtMicros === null ? null : await runOfCron(id, cron, background)
      return { found }
    },
    { everyMs: CRONS_MS },
  )
  const found = run.value?.found ?? null
  if (found === null) return null
  return (
    <>
      <Badge text={found.state} /> <FailureLink work={found} />
    </>
  )
}

/** The code of the newest failure, with a link to the records of the run. */
export function FailureLink({ work }: { work: Work }) {
  const { scheduledId, lastErrorCode } = work
  if (lastErrorCode === null) return null
  if (!may('logs:read')) return <Shown text={lastErrorCode} />
  return (
    <a
      href={hrefOf('schedules', { run: scheduledId, function: work.function })}
      aria-label={`${lastErrorCode}, records of ${scheduledId}`}
    >
      <Shown text={lastErrorCode} />
    </a>
  )
}

function Acts({ cron, reload }: { cron: Cron; reload: () => void }) {
  const { name, revision } = cron
  const isEnabled = cron.activation === 'enabled'
  const change = (): void =>
    ask({
      title: isEnabled ? `Disable the Cron ${name}?` : `Enable the Cron ${name}?`,
      effects: [
        isEnabled
          ? `${cron.function} is not run at its times, also in later Releases. What is scheduled ` +
            'already still runs.'
          : `${cron.function} is run at its times, from the next one on.`,
      ],
      command: svcCommand(
        `crons ${isEnabled ? 'disable' : 'enable'} ${name} --expected ${revision}`,
      ),
      label: isEnabled ? 'Disable the Cron' : 'Enable the Cron',
      act: () =>
        call('activateCron', environmentId.value, {
          params: { cron: name },
          body: {
            expectedRevision: revision,
            activation: isEnabled ? 'disabled' : 'enabled',
            changedAtMicros: nowMicros(),
          },
        }),
      done: reload,
    })
  const run = (): void =>
    ask({
      title: `Run the Cron ${name} now?`,
      effects: [
        `${cron.function} runs once with the arguments of the Cron, beside its times. The server ` +
          'rejects this while a run of the Cron has not ended.',
      ],
      command: svcCommand(`crons run ${name}`),
      label: 'Run the Cron',
      act: () => call('runCron', environmentId.value, { params: { cron: name } }),
      done: reload,
    })
  const label = isEnabled ? 'Disable …' : 'Enable …'
  return (
    <span class="actions">
      <button type="button" aria-label={`${label} ${name}`} onClick={change}>
        {label}
      </button>
      <button type="button" aria-label={`Run now … ${name}`} onClick={run}>
        Run now …
      </button>
    </span>
  )
}
