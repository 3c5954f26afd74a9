/** The fault of a command line that cannot be run as it was typed. */
import { Fault } from '../errors/fault.ts'
import { type Id, type IdPrefix, isId } from '../value/ids.ts'
import { explanation } from './explanations.ts'

/** Returns a CLIENT_USAGE that says `detail` and refers to the help of `command`. */
export function usage(detail: string, command: { readonly name: string } | null = null): Fault {
  const next = command === null ? 'See `svc --help`.' : `See \`svc ${command.name} --help\`.`
  return new Fault('CLIENT_USAGE', { detail, cause: explanation({ next }) })
}

/** Returns the identifier. `of` names the option or the argument. Throws CLIENT_USAGE. */
export function requireId<P extends IdPrefix>(
  prefix: P,
  text: string | undefined,
  of: string,
  command: { readonly name: string },
): Id<P> {
  if (isId(prefix, text)) return text
  const article = /^[aeios]/.test(prefix) ? 'an' : 'a'
  throw usage(`${of} needs ${article} ${prefix}_ identifier.`, command)
}
