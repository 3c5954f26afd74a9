/** The dry run of a promotion: the checks that the server makes of a Release against a Channel. */
import { useEffect, useState } from 'preact/hooks'
import type { Validated } from '../../wire/releases.ts'
import type { Status } from '../../wire/status.ts'
import { Badge, Empty, FailureNote, Section } from '../parts/page.tsx'
import { Block, Shown } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { call, type Failure, failureOf } from '../requests.ts'
import { environmentId, may, svcCommand } from '../state.ts'
import { releaseLabel } from './release-label.ts'

type Checked =
  | { readonly kind: 'checking' }
  | { readonly kind: 'passed'; readonly checks: Validated['checks'] }
  | { readonly kind: 'failed'; readonly failure: Failure }

/**
 * Only a validated Release is checked here: its checks change nothing, whereas those of a published
 * one decide about it.
 */
export function DryRun({ status }: { status: Status }) {
  const validated = status.releases.filter(({ state }) => state === 'validated')
  const { channels } = status
  const [releaseId, setReleaseId] = useChoice(validated.map((each) => each.releaseId))
  const [channel, setChannel] = useChoice(channels.map((each) => each.channel))
  const [last, setLast] = useState<{ readonly subject: string; readonly checked: Checked } | null>(
    null,
  )
  if (!may('releases:publish') || releaseId === undefined || channel === undefined) return null
  // An outcome is true of the Release that the Channel was bound to.
  const { revision } = channels.find((each) => each.channel === channel)!
  const subject = `${releaseId} ${channel} ${revision}`
  const checked = last?.subject === subject ? last.checked : null
  const setChecked = (outcome: Checked): void => setLast({ subject, checked: outcome })
  const check = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    setChecked({ kind: 'checking' })
    try {
      const { checks } = await call('validateRelease', environmentId.value, {
        params: { releaseId },
        body: { against: channel },
      })
      setChecked({ kind: 'passed', checks })
    } catch (error) {
      setChecked({ kind: 'failed', failure: failureOf(error) })
    }
  }
  const choose =
    (set: (value: string) => void) =>
    (event: { readonly currentTarget: HTMLSelectElement }): void => {
      set(event.currentTarget.value)
      setLast(null)
    }
  return (
    <Section title="Dry run">
      <p class="quiet">
        Checks a Release against the one that a Channel is bound to, and changes nothing. A
        promotion also looks whether the stored documents fit.
      </p>
      <form aria-label="Dry run" onSubmit={(event) => void check(event)}>
        <label class="field">
          <span class="label">Release</span>
          <select name="dry-run release" value={releaseId} onChange={choose(setReleaseId)}>
            {validated.map((each) => (
              <option key={each.releaseId} value={each.releaseId}>
                {releaseLabel(each)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span class="label">Channel</span>
          <select name="dry-run channel" value={channel} onChange={choose(setChannel)}>
            {channels.map((each) => (
              <option key={each.channel} value={each.channel}>
                {each.channel}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" disabled={checked?.kind === 'checking'}>
          Check
        </button>
      </form>
      <p class="quiet">The same on the command line:</p>
      <Block
        text={svcCommand(`release --release ${releaseId} --against ${channel}`)}
        label="Command"
      />
      {checked !== null && <Outcome checked={checked} />}
    </Section>
  )
}

/** Keeps a choice while the options have it, also where they have others before it by now. */
function useChoice(options: readonly string[]) {
  const [chosen, choose] = useState(options[0])
  const current = chosen !== undefined && options.includes(chosen) ? chosen : options[0]
  useEffect(() => choose(current), [current])
  return [current, choose] as const
}

function Outcome({ checked }: { checked: Checked }) {
  switch (checked.kind) {
    case 'checking':
      return <Empty>Checking …</Empty>
    case 'failed':
      return <FailureNote failure={checked.failure} />
    case 'passed':
      return (
        <div role="status">
          <p>
            <Badge text="ok" /> All checks passed. Nothing was changed.
          </p>
          <Table
            label="Checks"
            rows={checked.checks}
            keyOf={({ name }) => name}
            columns={[
              { head: 'Check', cell: ({ name }) => <Shown text={name} /> },
              { head: 'Outcome', cell: ({ outcome }) => outcome },
              { head: 'Detail', cell: ({ detail }) => <Shown text={detail} max={600} /> },
            ]}
          />
        </div>
      )
  }
}
