/** `query`, `mutation` and their internal twins: what a Function declares about itself. */
import {
  type ClientKind,
  type DeclaredErrorKind,
  ERROR_CODE,
  type FunctionKind,
  type FunctionManifest,
} from '../value/manifest.ts'
import {
  DefinitionError,
  isPlainObject,
  quotedList,
  rejectUnknownOptions,
} from './definition-errors.ts'
import { fieldsJson, kindOf, validatorJson } from './validators.ts'

const FUNCTION = Symbol.for('svc.function')
const CLIENTS: readonly string[] = ['public', 'confidential']
const ERROR_KINDS: readonly string[] = ['invalid', 'forbidden', 'not_found', 'conflict']

/** What the host reads of a Function; its name comes from the file and the export. */
interface FunctionContent extends Omit<FunctionManifest, 'name'> {
  readonly handler: (ctx: unknown, args: unknown) => unknown
}

export interface FunctionDefinition {
  readonly [FUNCTION]: FunctionContent
}

export const query = (definition: unknown) => define('query', 'public', definition)
export const mutation = (definition: unknown) => define('mutation', 'public', definition)
export const internalQuery = (definition: unknown) => define('query', 'internal', definition)
export const internalMutation = (definition: unknown) => define('mutation', 'internal', definition)

function define(
  kind: FunctionKind,
  visibility: FunctionManifest['visibility'],
  definition: unknown,
): FunctionDefinition {
  const internal = visibility === 'internal'
  const internalName = kind === 'query' ? 'internalQuery' : 'internalMutation'
  const owner = `${internal ? internalName : kind}(...)`
  if (!isPlainObject(definition)) {
    throw new DefinitionError(
      `${owner} is given ${kindOf(definition)}`,
      'Pass an object with arguments and a handler: { arguments: { ... }, handler: ... }',
    )
  }
  if (internal && definition.clients !== undefined) {
    throw new DefinitionError(
      `${owner} has clients, but no Application Key reaches an internal Function`,
      `Leave clients out, or write ${kind}(...)`,
    )
  }
  rejectUnknownOptions(
    definition,
    ['clients', 'auth', 'arguments', 'returns', 'errors', 'handler'],
    owner,
  )
  const { handler } = definition
  if (typeof handler !== 'function') {
    throw new DefinitionError(
      `${owner} has ${handler === undefined ? 'no handler' : `${kindOf(handler)} as its handler`}`,
      'Write handler: async (ctx, args) => { ... }',
    )
  }
  if (definition.auth !== undefined && definition.auth !== 'none') {
    throw new DefinitionError(`${owner} has an unknown auth`, 'Write auth: "none", or leave it out')
  }
  const content: FunctionContent = {
    kind,
    visibility,
    clients: clientsOf(definition.clients ?? [], owner),
    auth: 'none',
    arguments: fieldsJson(definition.arguments ?? {}, `${owner} arguments`),
    returns:
      definition.returns === undefined
        ? { type: 'any' }
        : validatorJson(definition.returns, `${owner} returns`),
    errors: errorsOf(definition.errors ?? {}, owner),
    handler: handler as FunctionContent['handler'],
  }
  return Object.freeze({ [FUNCTION]: Object.freeze(content) })
}

function clientsOf(value: unknown, owner: string): readonly ClientKind[] {
  if (!Array.isArray(value)) {
    throw new DefinitionError(`${owner} clients is ${kindOf(value)}`, 'Write ["public"]')
  }
  for (const [i, client] of value.entries()) {
    if (!CLIENTS.includes(client)) {
      throw new DefinitionError(
        `${owner} clients lists ${typeof client === 'string' ? `"${client}"` : kindOf(client)}`,
        `Use ${quotedList(CLIENTS)}`,
      )
    }
    if (value.indexOf(client) !== i) {
      throw new DefinitionError(`${owner} clients lists "${client}" twice`, 'List each kind once')
    }
  }
  return (value as ClientKind[]).toSorted()
}

function errorsOf(value: unknown, owner: string): { readonly [code: string]: DeclaredErrorKind } {
  if (!isPlainObject(value)) {
    throw new DefinitionError(
      `${owner} errors is ${kindOf(value)}`,
      'Write { CHANNEL_ARCHIVED: "conflict" }',
    )
  }
  const errors: { [code: string]: DeclaredErrorKind } = {}
  for (const [code, kind] of Object.entries(value)) {
    if (!ERROR_CODE.test(code)) {
      throw new DefinitionError(
        `${owner} declares the error "${code}"`,
        'Use upper-case letters, digits and _, at most 64 characters, such as CHANNEL_ARCHIVED',
      )
    }
    if (code.startsWith('APP_')) {
      throw new DefinitionError(
        `${owner} declares the error "${code}"`,
        `Write ${code.slice(4)}: callers see it as ${code}`,
      )
    }
    if (typeof kind !== 'string' || !ERROR_KINDS.includes(kind)) {
      throw new DefinitionError(
        `${owner} gives the error ${code} ${typeof kind === 'string' ? `"${kind}"` : kindOf(kind)}`,
        `Use ${quotedList(ERROR_KINDS)}`,
      )
    }
    errors[code] = kind as DeclaredErrorKind
  }
  return errors
}
