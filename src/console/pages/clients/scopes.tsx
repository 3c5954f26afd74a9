/** The fields that the forms of Clients and of keys share. */
import type { ApplicationScope } from '../../../value/application-scopes.ts'

/** Scopes that most programs need. */
export const DEFAULT_SCOPES: readonly ApplicationScope[] = ['mutation', 'query', 'realtime']
const NAME_CHARACTERS_MAX = 128

const MEANINGS: Readonly<Record<ApplicationScope, string>> = {
  action: 'action: call Actions',
  mutation: 'mutation: call Mutations',
  query: 'query: call Queries',
  realtime: 'realtime: subscribe to Queries',
  workspace: 'workspace: reach the HEAD of a Workspace',
}

export function NameInput({ label }: { label: string }) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input
        name="name"
        required
        maxLength={NAME_CHARACTERS_MAX}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  )
}

export function ScopeChoice({
  legend,
  scopes,
  chosen,
}: {
  legend: string
  scopes: readonly ApplicationScope[]
  chosen: readonly ApplicationScope[]
}) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {scopes.map((scope) => (
        <label key={scope} class="field check">
          <input
            type="checkbox"
            name="scope"
            value={scope}
            defaultChecked={chosen.includes(scope)}
          />
          {MEANINGS[scope]}
        </label>
      ))}
    </fieldset>
  )
}

/** Returns the chosen scopes, which the server rejects where there are none. */
export function scopesOf(form: FormData): ApplicationScope[] {
  return form.getAll('scope').map(String) as ApplicationScope[]
}
