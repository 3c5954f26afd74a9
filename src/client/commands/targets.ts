/** The target of commands that act on what a server serves. */
import type { CommandSpec, Context } from '../contexts.ts'
import { openRemote, type Remote, type RemoteOptions } from '../roots/remotes.ts'
import { usage } from '../usage.ts'

/** Returns the target that is given, by default what `svc dev` serves. Throws CLIENT_USAGE. */
export function targetOf(
  { local }: Pick<Remote, 'local'>,
  given: string | undefined,
  command: CommandSpec,
): string {
  const target = given ?? local?.target
  if (target !== undefined) return target
  throw usage('--target TARGET is required, except for svc dev.', command)
}

/** Opens the server and finds the target there. Throws CLIENT_USAGE, and as `openRemote` does. */
export async function openTarget(
  context: Context,
  { target, ...at }: RemoteOptions & { readonly target: string | undefined },
  command: CommandSpec,
): Promise<Remote & { readonly target: string }> {
  const remote = await openRemote(context, at)
  return { ...remote, target: targetOf(remote, target, command) }
}
