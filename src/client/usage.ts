/** The fault of a command line that cannot be run as it was typed. */
import { Fault } from '../errors/fault.ts'
import { explanation } from './explanations.ts'

/** Returns a CLIENT_USAGE that says `detail` and refers to the help of `command`. */
export function usage(detail: string, command: { readonly name: string } | null = null): Fault {
  const next = command === null ? 'See `svc --help`.' : `See \`svc ${command.name} --help\`.`
  return new Fault('CLIENT_USAGE', { detail, cause: explanation({ next }) })
}
