/** The fault of a command line that cannot be run as it was typed. */
import { Fault } from '../errors/fault.ts'

/** The cause of a CLIENT_USAGE: names the command whose help explains the usage. */
export class UsageCause {
  /** Null when no known command was typed. */
  readonly command: string | null

  constructor(command: string | null) {
    this.command = command
  }
}

/** Returns a CLIENT_USAGE that says `detail` and refers to the help of `command`. */
export function usage(detail: string, command: { readonly name: string } | null = null): Fault {
  return new Fault('CLIENT_USAGE', { detail, cause: new UsageCause(command?.name ?? null) })
}
