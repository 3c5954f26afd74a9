/** The routes of development keys at the application origin of a shared Environment. */
import { type Fault, isFault } from '../../../errors/fault.ts'
import type { WorkspaceRevisionId } from '../../../value/ids.ts'
import { Secret } from '../../../value/secret.ts'
import type { DevelopmentAccess, Operation } from '../../../wire/operations/operation.ts'
import {
  freezeWorkspace,
  readWorkspaceHead,
  synchronizeWorkspace,
} from '../../../wire/operations/workspaces.ts'
import type { Frozen, WorkspaceState } from '../../../wire/releases.ts'
import type { Published } from '../../../wire/workspace.ts'
import { type CommandSpec, type Context, option } from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { parseOrigin } from '../../origins.ts'
import { publicationHeaders } from '../../provenance/provenance.ts'
import { type CallArguments, type ReplyOf, requestOf } from '../../requests/operation-requests.ts'
import { send } from '../../requests/requests.ts'
import type { Publication } from '../../roots/remotes.ts'
import { secretFrom } from '../../secret-variables.ts'
import { usage } from '../../usage.ts'

const DEVELOPMENT_KEY = /^rk_dev_v1_[A-Za-z0-9_-]{43}$/
const KEY_VARIABLE = 'SERVICE_DEVELOPMENT_KEY'

export const KEY_OPTION = option(
  'VAR',
  `Variable with the development key; by default ${KEY_VARIABLE}`,
)

/** A shared Environment and the key that opens it. */
export interface Shared {
  readonly context: Context
  readonly origin: string
  readonly key: Secret
}

/** Throws CLIENT_ORIGIN_INVALID, and CLIENT_USAGE where the variable holds no development key. */
export function openShared(
  context: Context,
  command: CommandSpec,
  { url, variable = KEY_VARIABLE }: { readonly url: string; readonly variable: string | undefined },
): Shared {
  const origin = parseOrigin(context.environment, url)
  const text = secretFrom(context, command, '--key-env', variable)
  if (DEVELOPMENT_KEY.test(text)) return { context, origin, key: new Secret(text) }
  throw usage(
    `The variable ${variable} holds no development key (rk_dev_v1_...). Create one with ` +
      '`svc clients create --kind development`, then `svc credentials create`.',
    command,
  )
}

export function readHead(shared: Shared, workspace: string): Promise<WorkspaceState> {
  return call(shared, readWorkspaceHead, { params: { workspace } })
}

export function synchronize(
  shared: Shared,
  { workspace, frame, ...declared }: Publication & { readonly workspace: string },
): Promise<Published> {
  const headers = publicationHeaders(declared)
  return call(shared, synchronizeWorkspace, { params: { workspace }, headers, body: frame })
}

/** Validates the Release of the HEAD. The result may have failed checks. */
export function freezeHead(
  shared: Shared,
  {
    workspace,
    revisionId,
  }: { readonly workspace: string; readonly revisionId: WorkspaceRevisionId },
): Promise<Frozen> {
  return call(shared, freezeWorkspace, { params: { workspace }, body: { version: 1, revisionId } })
}

function call<O extends Operation<DevelopmentAccess>>(
  shared: Shared,
  operation: O,
  ...input: CallArguments<O>
): Promise<ReplyOf<O>> {
  const { context, origin, key } = shared
  const { headers, ...request } = requestOf(operation, ...input)
  const withKey = { ...headers, 'x-service-key': key.reveal() }
  return explain(shared, send(context, { ...request, origin, headers: withKey }))
}

async function explain<T>({ origin }: Shared, request: Promise<T>): Promise<T> {
  return request.catch((error) => {
    throw isFault(error) ? explanationFor(error, origin) : error
  })
}

/** Says what the codes of the application origin mean on these routes. */
function explanationFor(fault: Fault, origin: string): Fault {
  switch (fault.code) {
    case 'ROUTE_NOT_FOUND':
      return explained(fault, {
        detail: `The Environment at ${origin} takes no development keys.`,
        next:
          'Its purpose must be development or preview, and it must allow Workspace targets: ' +
          '`svc environments update --purpose development --workspace-targets allowed`.',
      })
    case 'TARGET_DENIED':
      return explained(fault, { next: 'Use a development key (rk_dev_v1_...).' })
    case 'PRODUCT_NOT_FOUND':
      return explained(fault, {
        detail: 'The Workspace has no such revision.',
        next: 'Use a revision that `svc dev --attach` printed for this Workspace.',
      })
    case 'PRODUCT_CAS_CONFLICT':
      return explained(fault, {
        detail: 'The HEAD of the Workspace is another one: another developer has synchronized it.',
        next:
          'Take over their changes, then start `svc dev --attach` again, which continues from ' +
          'the new HEAD; or use a Workspace of your own: `"workspace"` in svc.json names it.',
      })
    default:
      return fault
  }
}
