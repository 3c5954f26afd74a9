/**
 * Scopes of grants (contract/management.md, Scopes). A grant never covers a sibling or a parent.
 */
import type { EnvironmentId, ProjectId } from './ids.ts'

export type Scope =
  | { readonly kind: 'installation'; readonly projectId: null; readonly environmentId: null }
  | { readonly kind: 'project'; readonly projectId: ProjectId; readonly environmentId: null }
  | {
      readonly kind: 'environment'
      readonly projectId: ProjectId
      readonly environmentId: EnvironmentId
    }

export const INSTALLATION: Scope = { kind: 'installation', projectId: null, environmentId: null }

export function environmentScope(projectId: ProjectId, environmentId: EnvironmentId): Scope {
  return { kind: 'environment', projectId, environmentId }
}

/** Returns whether a grant at `outer` applies at `inner`. */
export function scopeContains(outer: Scope, inner: Scope): boolean {
  switch (outer.kind) {
    case 'installation':
      return true
    case 'project':
      return inner.kind !== 'installation' && inner.projectId === outer.projectId
    case 'environment':
      return (
        inner.kind === 'environment' &&
        inner.projectId === outer.projectId &&
        inner.environmentId === outer.environmentId
      )
  }
}

/** Returns where a grant at `a` applies within `b`: the narrower of both; null if nowhere. */
export function scopeIntersection(a: Scope, b: Scope): Scope | null {
  if (scopeContains(a, b)) return b
  return scopeContains(b, a) ? a : null
}

export function scopeEquals(a: Scope, b: Scope): boolean {
  return a.kind === b.kind && a.projectId === b.projectId && a.environmentId === b.environmentId
}
