/** The column form of Application scopes: sorted, separated by one space. */
import type { ApplicationScope } from '../../value/application-scopes.ts'

export function joinScopes(scopes: readonly ApplicationScope[]): string {
  return scopes.join(' ')
}

export function splitScopes(column: string): ApplicationScope[] {
  return column.split(' ') as ApplicationScope[]
}
