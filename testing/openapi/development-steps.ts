/** Steps of the walk over all operations: a Workspace that a development key changes. */
import { encodeBase64Url } from '../../src/value/base64url.ts'
import { EXPECTED_HEAD_HEADER, PROVENANCE_HEADER } from '../../src/wire/workspace.ts'
import { makePackage, type WorkspaceInput } from '../products.ts'
import type { State } from './arbitrary-requests.ts'
import type { Step, Walk } from './data-steps.ts'

const CONFIGURATION = {
  name: 'Shared',
  slug: 'shared',
  region: 'eu',
  purpose: 'preview',
  protection: 'none',
  location: null,
  workspaceTargets: 'allowed',
}
export const PROVENANCE = encodeBase64Url(
  new TextEncoder().encode('{"branch":null,"commit":null,"dirty":null,"message":"x","run":null}'),
)

/** Completes a change of the Environment, in which development keys then change Workspaces. */
export function developed(state: State): State {
  return { ...state, body: { configuration: CONFIGURATION, ...state.body } }
}

export function developmentSteps(
  { from }: Pick<Walk, 'from'>,
  content: WorkspaceInput,
): readonly Step[] {
  const params = { workspace: 'shared' }
  const headers = { [EXPECTED_HEAD_HEADER]: 'empty', [PROVENANCE_HEADER]: PROVENANCE }
  const body = makePackage({ ...content, ...params, source: 'shared' })
  const revision = () => ({ revisionId: from('synchronizeWorkspace', 'revisionId') })
  return [
    ['synchronizeWorkspace', 201, () => ({ params, headers, body })],
    ['freezeWorkspace', 200, () => ({ params, body: revision() })],
    ['readWorkspaceHead', 200, () => ({ params })],
  ]
}
