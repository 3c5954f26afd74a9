/** Reads secrets from the environment variables that options name; no argument is a secret. */
import type { CommandSpec, Context } from './contexts.ts'
import { usage } from './usage.ts'

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/
/** Matches credentials of this service, which may look like a variable name, and JWTs. */
const SECRET = /^rk_|^[\w-]+\.[\w-]+\.[\w-]*/

/**
 * Returns the trimmed value of the variable that `option` names. Throws CLIENT_USAGE, which never
 * repeats a name that may be a secret.
 */
export function secretFrom(
  context: Context,
  command: CommandSpec,
  option: string,
  variable: string,
): string {
  const text = exactSecretFrom(context, command, option, variable).trim()
  if (text === '') throw usage(`The variable ${variable} is not set or empty.`, command)
  return text
}

/** Returns the value of the variable with its white space. Throws CLIENT_USAGE. */
export function exactSecretFrom(
  { environment }: Context,
  command: CommandSpec,
  option: string,
  variable: string,
): string {
  if (SECRET.test(variable)) {
    throw usage(
      `${option} needs the name of a variable, not the secret itself. The secret may now be in ` +
        'the history of the shell: revoke it and issue a new one.',
      command,
    )
  }
  if (!VARIABLE_NAME.test(variable)) throw usage(`${option} needs the name of a variable.`, command)
  const text = environment.variable(variable) ?? ''
  if (text === '') throw usage(`The variable ${variable} is not set or empty.`, command)
  return text
}
