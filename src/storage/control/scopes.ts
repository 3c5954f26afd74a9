/** Application scopes and their column form: sorted, separated by one space. */

export const APPLICATION_SCOPES = ['action', 'mutation', 'query', 'realtime', 'workspace'] as const
export type ApplicationScope = (typeof APPLICATION_SCOPES)[number]

export function joinScopes(scopes: readonly ApplicationScope[]): string {
  return scopes.join(' ')
}

export function splitScopes(column: string): ApplicationScope[] {
  return column.split(' ') as ApplicationScope[]
}
