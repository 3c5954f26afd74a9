/** The promotion of a Release to a Channel that does not exist yet. */
import { useState } from 'preact/hooks'
import { CHANNEL_NAME } from '../../value/targets.ts'
import type { Status } from '../../wire/status.ts'
import { Empty } from '../parts/page.tsx'
import { call } from '../requests.ts'
import { ask, environmentId, svcCommand } from '../state.ts'
import { releaseLabel } from './release-label.ts'

export function NewChannel({ status, reload }: { status: Status; reload: () => void }) {
  const validated = status.releases.filter(({ state }) => state === 'validated')
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const first = validated[0]
  if (first === undefined) return <Empty>There is no validated Release to promote.</Empty>
  const { releaseId } = validated.find((each) => each.releaseId === chosen) ?? first
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const channel = name.trim()
    const found = problemOf(channel, status)
    setProblem(found)
    if (found !== null) return
    ask({
      title: `Create the Channel ${channel}?`,
      effects: [`Callers of channel:${channel} reach ${releaseId}, as soon as it serves.`],
      command: svcCommand(`promote --channel ${channel} --release ${releaseId} --expected empty`),
      label: 'Create the Channel',
      act: () =>
        call('promoteRelease', environmentId.value, {
          params: { channel },
          body: { releaseId, expectedReleaseId: 'empty' } as never,
        }),
      done: () => {
        setName('')
        reload()
      },
    })
  }
  return (
    <form aria-label="New Channel" onSubmit={submit}>
      <label class="field">
        <span class="label">New Channel</span>
        <input
          name="new channel"
          value={name}
          placeholder="staging"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={problem !== null}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span class="label">Its Release</span>
        <select
          name="new channel release"
          value={releaseId}
          onChange={(event) => setChosen(event.currentTarget.value)}
        >
          {validated.map((each) => (
            <option key={each.releaseId} value={each.releaseId}>
              {releaseLabel(each)}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Create …</button>
      {problem !== null && (
        <p class="violation" role="alert">
          {problem}
        </p>
      )}
    </form>
  )
}

function problemOf(channel: string, { channels }: Status): string | null {
  if (!CHANNEL_NAME.test(channel)) {
    return 'A name begins with a small letter and has at most 63 small letters, digits and hyphens.'
  }
  const isKnown = channels.some((each) => each.channel === channel)
  return isKnown ? 'This Channel exists. Promote to it in the table of Releases.' : null
}
