/** The name of a mount on the command line. */
import { MOUNT_NAME } from '../../../value/http/mounts.ts'
import type { CommandSpec } from '../../contexts.ts'
import { usage } from '../../usage.ts'

/** Returns the name. Throws a usage error that names the argument. */
export function requireMountName(
  name: string | undefined,
  argument: string,
  spec: CommandSpec,
): string {
  if (name !== undefined && MOUNT_NAME.test(name)) return name
  throw usage(`${argument} has lower-case letters, digits and -, such as payments.`, spec)
}
