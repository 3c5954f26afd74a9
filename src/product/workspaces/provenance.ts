/** The declared origin of a Release, found by the subject of an audit record. */
import { type Actor, holds } from '../../identity/actor.ts'
import { findProvenance } from '../../storage/control/workspaces.ts'
import { isId } from '../../value/ids.ts'
import type { Provenance } from '../../value/packages/provenance.ts'
import { environmentScope } from '../../value/scope.ts'
import type { RootPort } from '../ports.ts'

/**
 * `subject` is that of a record of this Product: a revision, a Release, or a Channel with its
 * Release such as `production:rel_...`. Returns null for any other, and without `releases:read`.
 */
export function findSubjectProvenance(
  { root }: RootPort,
  actor: Actor,
  subject: string,
): Provenance | null {
  const id = subject.slice(subject.indexOf(':') + 1)
  if (!isId('wsr', id) && !isId('rel', id)) return null
  const { projectId, environmentId } = root.descriptor
  if (!holds(actor, 'releases:read', environmentScope(projectId, environmentId))) return null
  return root.control.read((reader) => findProvenance(reader, id))
}
