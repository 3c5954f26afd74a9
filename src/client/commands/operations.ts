/** Shared by the commands that change the linked Environment under an Operation ID. */
import { isFault } from '../../errors/fault.ts'
import { isId, type OperationId } from '../../value/ids.ts'
import { type CommandSpec, type Context, flag, option, REMOTE_FLAG } from '../contexts.ts'
import { explained } from '../explanations.ts'
import { usage } from '../usage.ts'
import { createdAtMicros } from './scopes.ts'

export const REMOTE = {
  remote: REMOTE_FLAG,
  dev: flag('Act on the running svc dev of the root or a directory above it'),
  root: option('DIR', 'The root, linked or of svc dev; by default the working directory'),
} as const

/** The remark of commands whose effect is not served while the Environment is archived. */
export const ARCHIVED =
  'The Environment is archived and serves no calls. Run `svc environments restore` to serve again.'

/** Rethrows a failed change; a stale revision names the command that shows the newest one. */
export function rethrowChange(error: unknown, shows: string): never {
  if (!isFault(error, 'PRODUCT_CAS_CONFLICT')) throw error
  throw explained(error, {
    next: `Read the revision with \`${shows}\`, then repeat the change from there.`,
  })
}

const REVISION = /^(?:0|[1-9][0-9]{0,15})$/

/** Declares the options of a change; `of` names what has the revision. */
export function changeOptions(of: string) {
  return {
    ...REMOTE,
    expected: option('REVISION', `Revision of ${of} to replace; by default the newest`),
    'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
  } as const
}

export interface ChangeIntent {
  readonly operationId: OperationId
  readonly changedAtMicros: string
  /** The value of --expected. */
  readonly expected: string | undefined
}

/** Reads the options, so that equal --operation-id and --expected make an equal request. */
export function changeIntent(
  { environment }: Context,
  command: CommandSpec,
  {
    expected,
    'operation-id': given,
  }: { readonly expected: string | undefined; readonly 'operation-id': string | undefined },
): ChangeIntent {
  if (expected !== undefined && !REVISION.test(expected)) {
    throw usage('--expected needs a revision such as 12.', command)
  }
  const operationId = given ?? environment.system.ids.make('opn')
  if (!isId('opn', operationId)) throw usage('--operation-id needs an opn_ identifier.', command)
  return { operationId, changedAtMicros: createdAtMicros(operationId), expected }
}
