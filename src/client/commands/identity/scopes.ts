/** Scopes of grants: their options on the command line, and their form for people. */
import { isId } from '../../../value/ids.ts'
import { environmentScope, INSTALLATION, type Scope } from '../../../value/scope.ts'
import { type CommandSpec, type Context, option } from '../../contexts.ts'
import { openRemote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'

export function scopeText({ kind, projectId, environmentId }: Scope): string {
  return environmentId ?? projectId ?? kind
}

/** The kinds of scopes, widest first. */
export const SCOPE_KINDS = ['installation', 'project', 'environment'] as const
export type ScopeKind = (typeof SCOPE_KINDS)[number]

/** The options that name a scope, beside that of its kind. */
export const SCOPE_OPTIONS = {
  'project-id': option('prj_ID', 'Project; by default the one of the linked root'),
  'environment-id': option('env_ID', 'Environment; by default the one of the linked root'),
  root: option('DIR', 'The linked root; by default the working directory'),
} as const

export interface ScopeOptions {
  readonly kind: ScopeKind
  readonly projectId: string | undefined
  readonly environmentId: string | undefined
  readonly root: string | undefined
}

/**
 * Returns the scope of the options. Takes all identifiers from them or all from the root, since a
 * mix could name another scope. Throws CLIENT_USAGE, and as `openRemote` does.
 */
export async function scopeOf(
  context: Context,
  command: Pick<CommandSpec, 'name'>,
  { kind, projectId, environmentId, root }: ScopeOptions,
): Promise<Scope> {
  if (projectId !== undefined && !isId('prj', projectId)) {
    throw usage('--project-id needs a prj_ identifier.', command)
  }
  if (environmentId !== undefined && !isId('env', environmentId)) {
    throw usage('--environment-id needs an env_ identifier.', command)
  }
  switch (kind) {
    case 'installation':
      if (projectId === undefined && environmentId === undefined) return INSTALLATION
      throw usage('--scope installation takes no identifier.', command)
    case 'project': {
      if (environmentId !== undefined) {
        throw usage('--scope project takes no --environment-id.', command)
      }
      const id = projectId ?? (await openRemote(context, { root })).descriptor.projectId
      return { kind: 'project', projectId: id, environmentId: null }
    }
    case 'environment': {
      if (projectId !== undefined && environmentId !== undefined) {
        return environmentScope(projectId, environmentId)
      }
      if (projectId !== undefined || environmentId !== undefined) {
        throw usage('Give --project-id and --environment-id together, or neither.', command)
      }
      const { descriptor } = await openRemote(context, { root })
      return environmentScope(descriptor.projectId, descriptor.environmentId)
    }
  }
}
