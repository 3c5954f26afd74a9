/** Where `svc config set` takes a value from. */
import { Fault } from '../../errors/fault.ts'
import { CONFIGURATION_VALUE_BYTES_MAX } from '../../value/configuration.ts'
import type { CommandSpec, Context } from '../contexts.ts'
import { exactSecretFrom } from '../secret-variables.ts'
import { usage } from '../usage.ts'

interface Sources {
  /** What stood on the command line. */
  readonly argument: string | undefined
  /** Name of the environment variable. */
  readonly variable: string | undefined
}

/** Faults: CLIENT_USAGE, which never repeats a value, CLIENT_INTERRUPTED. */
export async function secretValue(
  context: Context,
  command: CommandSpec,
  { argument, variable }: Sources,
): Promise<string> {
  if (argument !== undefined) {
    throw usage(
      'A secret is never an argument: it may now be in the history of the shell, so have it ' +
        'revoked. Use standard input or --value-env VAR.',
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

/** Faults: CLIENT_USAGE. */
export async function variableValue(
  context: Context,
  command: CommandSpec,
  { argument, variable }: Sources,
): Promise<string> {
  if (argument === undefined) {
    if (variable === undefined && context.environment.stdin.isTTY) {
      throw usage('The value is an argument, or comes from standard input.', command)
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
  // Room for the line feed at the end, which is not part of the value.
  const bytes = await context.environment.stdin.readAll(CONFIGURATION_VALUE_BYTES_MAX + 2)
  if (bytes === null) throw tooLarge(command)
  return bounded(decoded(bytes, command).replace(/\r?\n$/, ''), command)
}

async function typedSecret({ environment, output }: Context, command: CommandSpec) {
  if (!environment.stderr.isTTY || output.json) {
    throw usage('The secret comes from standard input or --value-env VAR.', command)
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
    throw usage('The value is text in UTF-8; encode other bytes, in Base64 for example.', command)
  }
}

function bounded(value: string, command: CommandSpec): string {
  if (Buffer.byteLength(value) > CONFIGURATION_VALUE_BYTES_MAX) throw tooLarge(command)
  return value
}

function tooLarge(command: CommandSpec) {
  return usage(`The value has more than ${CONFIGURATION_VALUE_BYTES_MAX} bytes.`, command)
}
