/** Scopes of grants: for people, as options of a command, and those that a form offers. */
import { printable } from '../../../client/visible-text.ts'
import { roleWith } from '../../../value/capabilities.ts'
import type { GrantField } from '../../../wire/identity/access.ts'
import { about, environment } from '../../state.ts'

export type Scope = GrantField['scope']

/** Names the Environments that the page knows. */
export function scopeText({ projectId, environmentId }: Scope): string {
  if (projectId === null) return 'the installation'
  if (environmentId === null) return `the Project ${projectId}`
  const known = about.value?.environments.find((each) => each.environmentId === environmentId)
  return `the Environment ${printable(known?.name ?? environmentId)}`
}

/** The options of `svc` commands that name a scope. */
export function scopeOptions({ kind, projectId, environmentId }: Scope): string {
  return [
    `--scope ${kind}`,
    ...(projectId === null ? [] : [`--project-id ${projectId}`]),
    ...(environmentId === null ? [] : [`--environment-id ${environmentId}`]),
  ].join(' ')
}

export function roleText({ capabilities }: Pick<GrantField, 'capabilities'>): string {
  return roleWith(capabilities) ?? 'custom'
}

/** The shown Environment, its Project and, for owners, the installation; narrow ones first. */
export function scopesHere(): Scope[] {
  const known = environment.value
  if (known === undefined) return []
  const { projectId, environmentId } = known
  return [
    { kind: 'environment', projectId, environmentId },
    { kind: 'project', projectId, environmentId: null },
    ...(about.value?.managesInstallation === true
      ? [{ kind: 'installation', projectId: null, environmentId: null } as const]
      : []),
  ]
}
