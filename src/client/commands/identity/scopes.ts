/** Formats scopes for people. */
import type { Scope } from '../../../value/scope.ts'

export function scopeText({ kind, projectId, environmentId }: Scope): string {
  return environmentId ?? projectId ?? kind
}
