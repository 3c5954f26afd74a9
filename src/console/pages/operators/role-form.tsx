/** The choice of a role and of a scope, for an invitation and for a grant. */
import { ROLES, type Role } from '../../../value/capabilities.ts'
import { type Scope, scopeText } from './scopes.ts'

export function RoleChoice({ value, onChange }: { value: Role; onChange: (role: Role) => void }) {
  return (
    <label class="field">
      <span class="label">Role</span>
      <select
        name="role"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value as Role)}
      >
        {/* The role with the fewest rights comes first. */}
        {ROLES.toReversed().map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  )
}

export function ScopeChoice({
  scopes,
  value,
  onChange,
}: {
  scopes: readonly Scope[]
  /** The index of the chosen scope. */
  value: number
  onChange: (index: number) => void
}) {
  return (
    <label class="field">
      <span class="label">At</span>
      <select
        name="scope"
        value={String(value)}
        onChange={(event) => onChange(Number(event.currentTarget.value))}
      >
        {scopes.map((each, i) => (
          <option key={JSON.stringify(each)} value={String(i)}>
            {scopeText(each)}
          </option>
        ))}
      </select>
    </label>
  )
}
