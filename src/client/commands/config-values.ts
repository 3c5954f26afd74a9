/** The sources from which `svc config set` takes a value. */
import { Fault } from '../../errors/fault.ts'
import { CONFIGURATION_VALUE_BYTES_MAX } from '../../value/configuration.ts'
import type { CommandSpec, Context } from '../contexts.ts'
import { exactSecretFrom } from '../secret-variables.ts'
import { usage } from '../usage.ts'

interface Sources {
  /** The value on the command line. */
  readonly argument: string | undefined
  /** Name of the environment variable. */
  readonly variable: string | undefined
}

/** Returns a secret. Throws CLIENT_USAGE, which never repeats it, CLIENT_INTERRUPTED. */
export async function secretValue(
  context: Context,
  command: CommandSpec,
  { argument, variable }: Sources,
): Promise<string> {
  if (argument !== undefined) {
    throw usage(
      'A secret cannot be an argument. It may now be in the history of the shell: revoke it, ' +
        'then pass a new one on standard input or with --value-env VAR.',
      command,
    )
  }
  const typed = variable === undefined && context.environment.stdin.isTTY
  const value = typed
    ? await typedSecret(context, command)
    : await readValue(context, command, variable)
  if (value === '') throw usage('The secret is empty.', command)
  return value
}

/** Returns the value of a variable. Throws CLIENT_USAGE. */
export async function variableValue(
  context: Context,
  command: CommandSpec,
  { argument, variable }: Sources,
): Promise<string> {
  if (argument === undefined) {
    if (variable === undefined && context.environment.stdin.isTTY) {
      throw usage('There is no value. Pass it as an argument or on standard input.', command)
    }
    return readValue(context, command, variable)
  }
  if (variable !== undefined) throw usage('Give VALUE or --value-env, not both.', command)
  return bounded(argument, command)
}

async function readValue(
  context: Context,
  command: CommandSpec,
  variable: string | undefined,
): Promise<string> {
  if (variable !== undefined) {
    return bounded(exactSecretFrom(context, command, '--value-env', variable), command)
  }
  // Two more bytes than a value: the line end is not part of it.
  const bytes = await context.environment.stdin.readAll(CONFIGURATION_VALUE_BYTES_MAX + 2)
  if (bytes === null) throw tooLarge(command)
  return bounded(decoded(bytes, command).replace(/\r?\n$/, ''), command)
}

async function typedSecret({ environment, output }: Context, command: CommandSpec) {
  if (!environment.stderr.isTTY || output.json) {
    throw usage('There is no secret. Pass it on standard input or with --value-env VAR.', command)
  }
  await output.prompt('Secret: ')
  const line = await environment.stdin.readLine({ echo: false })
  if (line === null) throw new Fault('CLIENT_INTERRUPTED')
  return line
}

function decoded(bytes: Uint8Array, command: CommandSpec): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw usage(
      'The value is not UTF-8 text. Encode other bytes first, for example in Base64.',
      command,
    )
  }
}

function bounded(value: string, command: CommandSpec): string {
  if (Buffer.byteLength(value) > CONFIGURATION_VALUE_BYTES_MAX) throw tooLarge(command)
  return value
}

function tooLarge(command: CommandSpec) {
  return usage(`The value has more than ${CONFIGURATION_VALUE_BYTES_MAX} bytes.`, command)
}
