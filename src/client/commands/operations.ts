/** Shared by the commands that change the linked Environment under an Operation ID. */
import type { OperationId } from '../../value/ids.ts'
import { type Context, flag, option, REMOTE_FLAG } from '../contexts.ts'
import type { Explanations } from '../request-commands.ts'
import { requireId, usage } from '../usage.ts'
import { createdAtMicros } from './scopes.ts'

export const REMOTE = {
  remote: REMOTE_FLAG,
  dev: flag('Act on the running svc dev of the root or a directory above it'),
  root: option('DIR', 'The root, linked or of svc dev; by default the working directory'),
} as const

/** The options of a command whose root must be linked. */
export const LINKED = {
  remote: REMOTE_FLAG,
  root: option('DIR', 'The linked root; by default the working directory'),
} as const

export const OPERATION_ID = option('opn_ID', 'Operation ID; a new one by default')

/** The remark of commands whose effect is not served while the Environment is archived. */
export const ARCHIVED =
  'The Environment is archived and serves no calls. Run `svc environments restore` to serve again.'

/** Names the command that shows the newest revision, for a change of a stale one. */
export function staleRevision(shows: string): Explanations {
  const next = `Read the revision with \`${shows}\`, then repeat the change from there.`
  return { PRODUCT_CAS_CONFLICT: { next } }
}

const REVISION = /^(?:0|[1-9][0-9]{0,15})$/

/** Declares the options of a change; `of` names what has the revision. */
export function changeOptions(of: string) {
  return {
    ...REMOTE,
    expected: option('REVISION', `Revision of ${of} to replace; by default the newest`),
    'operation-id': OPERATION_ID,
  } as const
}

/** Returns the Operation ID that is given, by default a new one. Throws CLIENT_USAGE. */
export function operationIdOf(
  { environment }: Context,
  command: { readonly name: string },
  given: string | undefined,
): OperationId {
  return requireId('opn', given ?? environment.system.ids.make('opn'), '--operation-id', command)
}

/** The remark before a change whose response may be lost. */
export function operationText({ operationId }: Pick<ChangeIntent, 'operationId'>): string {
  return `Operation ${operationId}`
}

export interface ChangeIntent {
  readonly operationId: OperationId
  readonly changedAtMicros: string
  /** The value of --expected. */
  readonly expected: string | undefined
}

/** Reads the options, so that equal --operation-id and --expected make an equal request. */
export function changeIntent(
  context: Context,
  command: { readonly name: string },
  {
    expected,
    'operation-id': given,
  }: { readonly expected?: string | undefined; readonly 'operation-id': string | undefined },
): ChangeIntent {
  if (expected !== undefined && !REVISION.test(expected)) {
    throw usage('--expected needs a revision such as 12.', command)
  }
  const operationId = operationIdOf(context, command, given)
  return { operationId, changedAtMicros: createdAtMicros(operationId), expected }
}
