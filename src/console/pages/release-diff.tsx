/** The differences between two Releases: their Functions and their tables. */
import { useState } from 'preact/hooks'
import type { FunctionCatalog, TableCatalog } from '../../wire/catalogs.ts'
import type { Status } from '../../wire/status.ts'
import { useLoaded } from '../loading.ts'
import { Empty, Result, Section } from '../parts/page.tsx'
import { Block, Shown } from '../parts/shown.tsx'
import { call } from '../requests.ts'
import { environmentId } from '../state.ts'
import { releaseLabel } from './release-label.ts'

interface Declared {
  /** Such as `Function tasks.add`. */
  readonly name: string
  /** The declaration, as indented JSON. */
  readonly text: string
}

interface Difference {
  readonly name: string
  readonly before: string | null
  readonly after: string | null
}

export function ReleaseDiff({ status: { releases } }: { status: Status }) {
  const shown = releases.filter(({ state }) => state !== 'retired')
  const [before, setBefore] = useState<string>(shown[1]?.releaseId ?? '')
  const [after, setAfter] = useState<string>(shown[0]?.releaseId ?? '')
  if (shown.length < 2) return null
  return (
    <Section title="Differences">
      <div class="filters">
        <Choice label="From" value={before} releases={shown} onChoose={setBefore} />
        <Choice label="To" value={after} releases={shown} onChoose={setAfter} />
      </div>
      <Differences before={before} after={after} />
    </Section>
  )
}

function Choice({
  label,
  value,
  releases,
  onChoose,
}: {
  label: string
  value: string
  releases: Status['releases']
  onChoose: (name: string) => void
}) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {releases.map((each) => (
          <option key={each.releaseId} value={each.releaseId}>
            {releaseLabel(each)}
          </option>
        ))}
      </select>
    </label>
  )
}

function Differences({ before, after }: { before: string; after: string }) {
  const id = environmentId.value
  const compared = useLoaded(`${id} ${before} ${after}`, async () => {
    const [one, other] = await Promise.all([declaredBy(id, before), declaredBy(id, after)])
    return differencesOf(one, other)
  })
  return (
    <Result of={compared}>
      {(differences) =>
        differences.length === 0 ? (
          <Empty>Both declare the same Functions and tables. Their code may differ.</Empty>
        ) : (
          <ul class="log">
            {differences.map((each) => (
              <li key={each.name}>
                <details>
                  <summary>
                    {changeOf(each)} <Shown text={each.name} />
                  </summary>
                  {each.before !== null && <Block text={each.before} label="Before" />}
                  {each.after !== null && <Block text={each.after} label="After" />}
                </details>
              </li>
            ))}
          </ul>
        )
      }
    </Result>
  )
}

function changeOf({ before, after }: Difference): string {
  if (before === null) return 'added'
  return after === null ? 'removed' : 'changed'
}

async function declaredBy(id: string, releaseId: string): Promise<Declared[]> {
  const query = { target: `release:${releaseId}` } as const
  const [{ functions }, { tables }] = await Promise.all([
    call('listFunctions', id, { query }),
    call('listTables', id, { query }),
  ])
  return [...functions.map(declaredFunction), ...tables.map(declaredTable)]
}

function declaredFunction(each: FunctionCatalog['functions'][number]): Declared {
  return { name: `Function ${each.name}`, text: JSON.stringify(each, null, 2) }
}

function declaredTable(each: TableCatalog['tables'][number]): Declared {
  return { name: `table ${each.name}`, text: JSON.stringify(each, null, 2) }
}

function differencesOf(before: readonly Declared[], after: readonly Declared[]): Difference[] {
  const [one, other] = [before, after].map(
    (declared) => new Map(declared.map(({ name, text }) => [name, text])),
  )
  const names = new Set([...one!.keys(), ...other!.keys()])
  return [...names]
    .toSorted()
    .map((name) => ({ name, before: one!.get(name) ?? null, after: other!.get(name) ?? null }))
    .filter((each) => each.before !== each.after)
}
