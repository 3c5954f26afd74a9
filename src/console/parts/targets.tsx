/** The choice of a target: what of the Environment a page shows. */
import type { Status } from '../../wire/status.ts'
import { type Loaded, useLoaded } from '../loading.ts'
import { call } from '../requests.ts'
import { environmentId, go, route } from '../state.ts'
import { NamedOption } from './shown.tsx'

/** The targets of an Environment, those that serve applications first. */
export function targetsOf({ servingPolicy, channels, workspaces }: Status): string[] {
  return [
    ...(servingPolicy === null ? [] : ['environment:default']),
    ...channels.map(({ channel }) => `channel:${channel}`),
    ...workspaces.map(({ name }) => `workspace:${name}`),
  ]
}

/** Returns the targets, and the one of the address or else the first. */
export function useTarget(): {
  readonly targets: Loaded<readonly string[]>
  readonly target: string | null
} {
  const id = environmentId.value
  const targets = useLoaded(id, async () => targetsOf(await call('readStatus', id)))
  const wanted = route.value.parameters.get('target')
  return { targets, target: wanted ?? targets.value?.[0] ?? null }
}

/** Another target shows the page from its beginning. */
export function TargetChoice({ targets, target }: { targets: readonly string[]; target: string }) {
  const known = targets.includes(target) ? targets : [target, ...targets]
  return (
    <label class="field">
      <span class="label">Target</span>
      <select
        value={target}
        onChange={(event) => go(route.value.page, { target: event.currentTarget.value })}
      >
        {known.map((each) => (
          <NamedOption key={each} value={each} name={each} />
        ))}
      </select>
    </label>
  )
}
