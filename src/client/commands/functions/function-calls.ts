/** Options, key, arguments and printed results of commands that call a Function. */
import { Fault } from '../../../errors/fault.ts'
import { plainToArguments, valueToPlain } from '../../../value/plain.ts'
import { Secret } from '../../../value/secret.ts'
import { type Json, parseStrictJson, parseWrittenJson } from '../../../value/strict-json.ts'
import { decodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { parseFields } from '../../../value/validator-json.ts'
import type { Value } from '../../../value/values.ts'
import { listFunctions } from '../../../wire/operations/catalogs.ts'
import {
  type CommandSpec,
  type Context,
  option,
  optionalArgument,
  type PositionalSpec,
} from '../../contexts.ts'
import { readIfPresent } from '../../files.ts'
import { parseOrigin } from '../../origins.ts'
import type { Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { secretFrom } from '../../secret-variables.ts'
import { usage } from '../../usage.ts'
import { REMOTE } from '../operations.ts'

const APPLICATION_KEY = /^rk_(?:pub|sec)_v1_[A-Za-z0-9_-]{43}$/
/** Bytes of the public request envelope (contract/application.md, Limits). */
const ARGUMENTS_BYTES_MAX = 2 * 1024 * 1024

export const FUNCTION_OPTIONS = {
  ...REMOTE,
  url: option('ORIGIN', 'Origin of the application API; needed without svc dev'),
  'key-env': option('VAR', 'Environment variable with the Application Key; needed with --url'),
  'token-env': option('VAR', 'Environment variable that holds a functional token'),
  target: option('TARGET', 'channel:NAME, release:rel_ID or environment:default; needed likewise'),
  'args-file': option('FILE', 'Arguments from a file'),
} as const

export const ARGUMENTS_POSITIONAL: PositionalSpec = optionalArgument(
  'ARGUMENTS',
  'A JSON object, or - for stdin',
)

export interface CallerOptions {
  readonly url: string | undefined
  readonly 'key-env': string | undefined
  readonly 'token-env'?: string | undefined
}

/** The kinds of keys that may call a Function. */
interface Callable {
  readonly clients: readonly ('public' | 'confidential')[]
}

/**
 * Returns the origin of the application API, the Application Key for a Function, and the functional
 * token, which only the server validates; null for none. Those of `svc dev` are the default.
 */
export function callerFrom(
  context: Context,
  command: CommandSpec,
  options: CallerOptions,
  { local }: Pick<Remote, 'local'>,
) {
  const { url, 'key-env': keyVariable, 'token-env': tokenVariable } = options
  const token =
    tokenVariable === undefined
      ? null
      : new Secret(secretFrom(context, command, '--token-env', tokenVariable))
  if (local !== null && url === undefined) {
    const given = keyVariable === undefined ? null : keyFrom(keyVariable)
    const keyFor = ({ clients }: Callable): Secret =>
      given ?? (isConfidential(clients) ? local.confidentialKey : local.applicationKey)
    return { origin: local.url, keyFor, token }
  }
  if (url === undefined) throw usage('--url ORIGIN is required, except for svc dev.', command)
  const origin = parseOrigin(context.environment, url)
  if (keyVariable === undefined) throw usage('--key-env VAR is required with --url.', command)
  const key = keyFrom(keyVariable)
  return { origin, keyFor: (_: Callable): Secret => key, token }

  function keyFrom(variable: string): Secret {
    const key = secretFrom(context, command, '--key-env', variable)
    if (APPLICATION_KEY.test(key)) return new Secret(key)
    throw usage(
      `The variable ${variable} holds no Application Key (rk_pub_v1_... or rk_sec_v1_...).`,
      command,
    )
  }
}

function isConfidential(clients: Callable['clients']): boolean {
  return clients.includes('confidential') && !clients.includes('public')
}

export async function readArguments(
  { environment }: Context,
  command: CommandSpec,
  given: string | undefined,
  file: string | undefined,
): Promise<Json> {
  if (given !== undefined && file !== undefined) {
    throw usage('Give the arguments once: as an argument or with --args-file.', command)
  }
  let input: string | Uint8Array | null = given ?? '{}'
  if (given === '-') input = await environment.stdin.readAll(ARGUMENTS_BYTES_MAX)
  if (file !== undefined) {
    const path = resolvePath(environment, file)
    input = readIfPresent(path, ARGUMENTS_BYTES_MAX)
    if (input === null) throw new Fault('CLIENT_FILE_FAILED', { detail: `There is no ${path}.` })
  }
  if (input === null) {
    throw usage(`The arguments have more than ${ARGUMENTS_BYTES_MAX} bytes.`, command)
  }
  return argumentsInvalid(() =>
    typeof input === 'string' ? parseStrictJson(input) : parseWrittenJson(input),
  )
}

/**
 * Finds a public Function in the catalog of the target, or one of `any` visibility. Throws
 * FUNCTION_NOT_FOUND.
 */
export async function findFunction(
  context: Context,
  remote: Remote,
  target: string,
  name: string,
  visibility: 'public' | 'any' = 'public',
) {
  const request = remote.call(listFunctions, { query: { target }, subjects: { target } })
  const { functions } = await context.output.progress('reading the catalog', request)
  const callable = functions.filter((item) => [item.visibility, 'any'].includes(visibility))
  const found = callable.find((item) => item.name === name)
  if (found !== undefined) return found
  const names = callable.map((item) => item.name)
  const none = visibility === 'any' ? 'It has no Function.' : 'It has no public Function.'
  const known = names.length === 0 ? none : `It has ${shownNames(names)}.`
  throw new Fault('FUNCTION_NOT_FOUND', { detail: known })
}

const NAMES_SHOWN_MAX = 12

function shownNames(names: readonly string[]): string {
  const rest = names.length - NAMES_SHOWN_MAX
  return names.slice(0, NAMES_SHOWN_MAX).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/**
 * Converts plain arguments by the validators of the Function, or tagged ones where `declared` is
 * null. Throws ARGUMENTS_INVALID.
 */
export function toValues(json: Json, declared: Json | null): Value {
  return argumentsInvalid(() =>
    declared === null ? decodeTagged(json) : plainToArguments(json, parseFields(declared)),
  )
}

/** Reports a validation failure by path and rule, never by value. */
function argumentsInvalid<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('ARGUMENTS_INVALID', { violations: [{ path: error.path, rule: error.rule }] })
  }
}

/** Returns a tagged result as it is printed. Throws CLIENT_RESPONSE_INVALID. */
export function printedResult(json: Json, isTagged: boolean): Json {
  try {
    const value = decodeTagged(json)
    return isTagged ? json : valueToPlain(value)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('CLIENT_RESPONSE_INVALID', { detail: `The result at ${error.message}.` })
  }
}
