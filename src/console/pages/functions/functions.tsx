/** Functions: the catalog of a target, and one Function with its arguments, runs and failures. */
import { durationText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { RecordList } from '../../parts/log-records.tsx'
import { Empty, Page, Reload, Result, Section } from '../../parts/page.tsx'
import { Block, Shown } from '../../parts/shown.tsx'
import { Table } from '../../parts/table.tsx'
import { TargetChoice, useTarget } from '../../parts/targets.tsx'
import { call } from '../../requests.ts'
import { environmentId, hrefOf, may, route } from '../../state.ts'
import { figureColumns } from './figure-columns.ts'
import { FiguresNote, loadFigures } from './figures.tsx'
import type { FunctionField } from './function-field.ts'
import { RunSection } from './run-form.tsx'

const FAILURES_MAX = 20
const FAILURES_MS = 3_000
const USAGE_MAX = 30
const FIGURES_MS = 5_000

export function FunctionsPage() {
  const { targets, target } = useTarget()
  return (
    <Page title="Functions">
      <Result of={targets}>
        {(known) =>
          target === null ? (
            <Section title="Catalog">
              <Empty>Nothing is released here yet, so there are no Functions.</Empty>
            </Section>
          ) : (
            <Catalog targets={known} target={target} />
          )
        }
      </Result>
    </Page>
  )
}

function Catalog({ targets, target }: { targets: readonly string[]; target: string }) {
  const id = environmentId.value
  const catalog = useLoaded(`${id} ${target}`, () =>
    call('listFunctions', id, { query: { target } }),
  )
  const name = route.value.parameters.get('function')
  return (
    <Result of={catalog}>
      {({ functions, releaseId }) => {
        if (name === null) return <List targets={targets} target={target} functions={functions} />
        const found = functions.find((each) => each.name === name)
        if (found === undefined) return <Empty>This target has no such Function.</Empty>
        return <One key={name} target={target} releaseId={releaseId} found={found} />
      }}
    </Result>
  )
}

function List({
  targets,
  target,
  functions,
}: {
  targets: readonly string[]
  target: string
  functions: readonly FunctionField[]
}) {
  const id = environmentId.value
  const figures = useLoaded(`${id} ${target}`, (background) => loadFigures(target, background), {
    everyMs: FIGURES_MS,
  })
  return (
    <Section title="Catalog" actions={<Reload of={[figures]} />}>
      <div class="filters">
        <TargetChoice targets={targets} target={target} />
      </div>
      <FiguresNote of={figures} />
      {functions.length === 0 ? (
        <Empty>The Release of this target has no Functions.</Empty>
      ) : (
        <Table
          label="Functions"
          rows={functions}
          keyOf={(each) => each.name}
          columns={[
            {
              head: 'Function',
              cell: (each) => (
                <a href={hrefOf('functions', { target, function: each.name })}>
                  <Shown text={each.name} />
                </a>
              ),
            },
            { head: 'Kind', cell: ({ kind }) => kind },
            ...figureColumns(figures.value),
            { head: 'Visibility', cell: ({ visibility }) => visibility },
            { head: 'User identity', cell: ({ auth }) => auth },
            {
              head: 'Arguments',
              cell: (each) => <Shown text={Object.keys(each.arguments).join(', ') || 'none'} />,
            },
          ]}
        />
      )}
    </Section>
  )
}

function One({
  target,
  releaseId,
  found,
}: {
  target: string
  releaseId: string
  found: FunctionField
}) {
  return (
    <>
      <Section title={found.name}>
        <p>
          <a href={hrefOf('functions', { target })}>All Functions of {target}</a>
        </p>
        <p class="facts">
          <span>{found.kind}</span>
          <span>{found.visibility}</span>
          <span>user identity: {found.auth}</span>
          {Object.entries(found.errors).map(([code, kind]) => (
            <span key={code}>
              declares <code>{code}</code> ({kind})
            </span>
          ))}
        </p>
        <details>
          <summary>Validators of the arguments and the result</summary>
          <Block text={JSON.stringify(found.arguments, null, 2)} label="Arguments" />
          <Block text={JSON.stringify(found.returns, null, 2)} label="Result" />
        </details>
      </Section>
      <RunSection target={target} releaseId={releaseId} found={found} />
      {may('logs:read') && <Failures name={found.name} />}
      {may('logs:read') && <Usage name={found.name} />}
    </>
  )
}

/** The newest failures, each with the lines of the source that its stack names. */
function Failures({ name }: { name: string }) {
  const id = environmentId.value
  const query = { function: name, level: 'warn', limit: FAILURES_MAX } as const
  const read = (background: boolean) => call('listLogs', id, { query }, { background })
  const failures = useLoaded(`${id} ${name}`, read, { everyMs: FAILURES_MS })
  return (
    <Section title="Failures" actions={<Reload of={[failures]} />}>
      <Result of={failures}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>The log has no failure of this Function.</Empty>
          ) : (
            <RecordList records={items} />
          )
        }
      </Result>
    </Section>
  )
}

interface UsageFields {
  readonly runs?: number
  readonly cpuMicros?: number
  readonly durationMicros?: number
}

/** The usage that the log has once a minute in which the Function ran. */
function Usage({ name }: { name: string }) {
  const id = environmentId.value
  const usage = useLoaded(`${id} ${name}`, async () => {
    const query = { function: name, stream: 'platform', limit: 200 } as const
    const { items } = await call('listLogs', id, { query })
    return items.filter(({ event }) => event === 'function.usage').slice(-USAGE_MAX)
  })
  const fieldsOf = ({ fields }: { readonly fields?: object }): UsageFields => fields ?? {}
  const each = (micros: number | string | undefined, runs = 1): string =>
    durationText(Number(micros ?? 0) / Math.max(runs, 1))
  return (
    <Section title="Usage">
      <Result of={usage}>
        {(records) =>
          records.length === 0 ? (
            <Empty>The log has no usage of this Function. It is reported once a minute.</Empty>
          ) : (
            <Table
              label="Usage"
              rows={records.toReversed()}
              keyOf={({ cursor }) => cursor}
              columns={[
                { head: 'Until', cell: ({ atMicros }) => timeText(atMicros) },
                { head: 'Runs', isNumber: true, cell: (at) => String(fieldsOf(at).runs ?? '–') },
                {
                  head: 'Time of a run',
                  isNumber: true,
                  cell: (at) =>
                    each(at.durationMicros ?? fieldsOf(at).durationMicros, fieldsOf(at).runs),
                },
                {
                  head: 'CPU time of a run',
                  isNumber: true,
                  cell: (at) => each(fieldsOf(at).cpuMicros, fieldsOf(at).runs),
                },
              ]}
            />
          )
        }
      </Result>
    </Section>
  )
}
