/** Uses that an Application Key can be granted. */
export const APPLICATION_SCOPES = ['action', 'mutation', 'query', 'realtime', 'workspace'] as const

export type ApplicationScope = (typeof APPLICATION_SCOPES)[number]

export function isApplicationScope(text: string): text is ApplicationScope {
  return (APPLICATION_SCOPES as readonly string[]).includes(text)
}
