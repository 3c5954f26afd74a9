/** A secret is never an argument: the argument names the environment variable that holds it. */

import type { CommandSpec, Context } from './contexts.ts'
import { usage } from './usage.ts'

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/
/** Our own secrets, some of which are names of variables too, and the parts of a JWT. */
const SECRET = /^rk_|^[\w-]+\.[\w-]+\.[\w-]*/

/**
 * The trimmed text of the variable that `option` names. Faults: CLIENT_USAGE, which repeats the
 * name only where it cannot be a secret.
 */
export function secretFrom(
  context: Context,
  command: CommandSpec,
  option: string,
  variable: string,
): string {
  const text = exactSecretFrom(context, command, option, variable).trim()
  if (text === '') throw usage(`The variable ${variable} is not set.`, command)
  return text
}

/** The same, as it is: white space may belong to it. */
export function exactSecretFrom(
  { environment }: Context,
  command: CommandSpec,
  option: string,
  variable: string,
): string {
  if (SECRET.test(variable)) {
    throw usage(
      `${option} takes the name of a variable, not the secret, which may now be in the history ` +
        'of the shell: have it revoked and a new one made.',
      command,
    )
  }
  if (!VARIABLE_NAME.test(variable)) throw usage(`${option} needs a variable name.`, command)
  const text = environment.variable(variable) ?? ''
  if (text === '') throw usage(`The variable ${variable} is not set.`, command)
  return text
}
