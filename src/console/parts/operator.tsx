/** An operator by name where the page may know the names, and by ID everywhere. */
import { type Loaded, useLoaded } from '../loading.ts'
import { call } from '../requests.ts'
import { about, environmentId, hrefOf } from '../state.ts'
import { Identifier, Shown } from './shown.tsx'

const OPERATORS_MAX = 50

/** Names by ID. Without `operators:manage` at the installation, the own name alone is known. */
export function useOperatorNames(): Loaded<ReadonlyMap<string, string>> {
  const { operatorId, operatorName, managesInstallation } = about.value!
  return useLoaded(`names of operators ${operatorId}`, async () => {
    const own = [operatorId, operatorName] as const
    if (!managesInstallation) return new Map([own])
    const query = { limit: OPERATORS_MAX }
    const { items } = await call('listOperators', environmentId.value, { query })
    return new Map([own, ...items.map((each) => [each.operatorId, each.operatorName] as const)])
  })
}

export function Operator({ id, name }: { id: string; name: string | undefined }) {
  if (name === undefined) return <Identifier id={id} />
  return (
    <>
      {about.value!.managesInstallation ? (
        <a href={hrefOf('operators', { operator: id })}>
          <Shown text={name} max={60} />
        </a>
      ) : (
        <Shown text={name} max={60} />
      )}{' '}
      <span class="hint">
        <Identifier id={id} />
      </span>
    </>
  )
}
