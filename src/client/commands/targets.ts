/** The target of commands that act on what a server serves. */
import type { CommandSpec } from '../contexts.ts'
import type { Remote } from '../roots/remotes.ts'
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
