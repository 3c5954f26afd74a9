/** `query`, `mutation`, `action` and their internal variants: the definition of a Function. */
import { isConfigurationName } from '../value/configuration.ts'
import { AUTH_MODES, type AuthMode } from '../value/identities.ts'
import {
  type ClientKind,
  type DeclaredErrorKind,
  ERROR_CODE,
  type FunctionKind,
  type FunctionManifest,
  type FunctionUses,
  isHost,
  USES_MAX,
} from '../value/manifest.ts'
import {
  DefinitionError,
  isPlainObject,
  quotedList,
  rejectUnknownOptions,
} from './definition-errors.ts'
import { parseRetry } from './retries.ts'
import { fieldsJson, kindOf, validatorJson } from './validators.ts'

const FUNCTION = Symbol.for('svc.function')
const CLIENTS: readonly string[] = ['public', 'confidential']
/**
 * The clients of public Functions without `clients`. The builder replaces the expression by the
 * list in svc.json (dev/building/bundles.ts).
 */
const DEFAULT_CLIENTS = (globalThis as { readonly __svcClients?: unknown }).__svcClients ?? []
const ERROR_KINDS: readonly string[] = ['invalid', 'forbidden', 'not_found', 'conflict']

/** The part of a Function that the runner reads; its name comes from the file and the export. */
interface FunctionContent extends Omit<FunctionManifest, 'name'> {
  readonly handler: (ctx: unknown, args: unknown) => unknown
}

export interface FunctionDefinition {
  readonly [FUNCTION]: FunctionContent
}

export const query = (definition: unknown) => define('query', 'public', definition)
export const mutation = (definition: unknown) => define('mutation', 'public', definition)
export const action = (definition: unknown) => define('action', 'public', definition)
export const internalQuery = (definition: unknown) => define('query', 'internal', definition)
export const internalMutation = (definition: unknown) => define('mutation', 'internal', definition)
export const internalAction = (definition: unknown) => define('action', 'internal', definition)

/** The definitions made while the code is loaded; null once it is loaded. */
let made: Map<FunctionDefinition, Error> | null = new Map()

/**
 * Throws the DefinitionError of the first definition that no module exports, since it could not be
 * called. The generated entry runs this after all modules.
 */
export function requireExports(modules: readonly object[]): void {
  const definitions = made
  made = null
  const exported = new Set(modules.flatMap((module) => Object.values(module)))
  for (const [definition, error] of definitions ?? []) {
    if (!exported.has(definition)) throw error
  }
}

const OPTIONS = ['clients', 'auth', 'arguments', 'returns', 'errors', 'handler']

function define(
  kind: FunctionKind,
  visibility: FunctionManifest['visibility'],
  definition: unknown,
): FunctionDefinition {
  const internal = visibility === 'internal'
  const owner = `${internal ? `internal${kind[0]!.toUpperCase()}${kind.slice(1)}` : kind}(...)`
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
  if (kind !== 'action' && definition.uses !== undefined) {
    throw new DefinitionError(
      `${owner} has uses, but only an Action names what it reaches`,
      'Leave uses out, or do that part in an action(...)',
    )
  }
  if (kind !== 'action' && definition.retry !== undefined) {
    throw new DefinitionError(
      `${owner} has retry, but only an Action may run more than once`,
      'Leave retry out',
    )
  }
  if (definition.compress !== undefined) checkCompress(kind, visibility, definition.compress, owner)
  const options = [...OPTIONS, 'compress', ...(kind === 'action' ? ['uses', 'retry'] : [])]
  rejectUnknownOptions(definition, options, owner)
  const { handler } = definition
  if (typeof handler !== 'function') {
    throw new DefinitionError(
      `${owner} has ${handler === undefined ? 'no handler' : `${kindOf(handler)} as its handler`}`,
      'Write handler: async (ctx, args) => { ... }',
    )
  }
  const content: FunctionContent = {
    kind,
    visibility,
    clients: clientsOf(definition.clients ?? (internal ? [] : DEFAULT_CLIENTS), owner),
    auth: authOf(definition.auth, owner),
    arguments: fieldsJson(definition.arguments ?? {}, `${owner} arguments`),
    returns:
      definition.returns === undefined
        ? { type: 'any' }
        : validatorJson(definition.returns, `${owner} returns`),
    errors: errorsOf(definition.errors ?? {}, owner),
    ...(kind === 'action' && { uses: usesOf(definition.uses ?? {}, owner) }),
    ...(definition.retry !== undefined && { retry: parseRetry(definition.retry, owner) }),
    ...(definition.compress === false && { compress: false }),
    handler: handler as FunctionContent['handler'],
  }
  const defined = Object.freeze({ [FUNCTION]: Object.freeze(content) })
  noteMade(defined, owner)
  return defined
}

function checkCompress(
  kind: FunctionKind,
  visibility: FunctionManifest['visibility'],
  value: unknown,
  owner: string,
): void {
  if (kind !== 'query' || visibility === 'internal') {
    throw new DefinitionError(
      `${owner} has compress, but only results of public Queries are compressed`,
      'Leave compress out',
    )
  }
  if (typeof value === 'boolean') return
  throw new DefinitionError(
    `${owner} compress is ${kindOf(value)}`,
    'Use false, or leave compress out to compress long results',
  )
}

function noteMade(definition: FunctionDefinition, owner: string): void {
  const fix = `Write export const NAME = ${owner} in a file below functions`
  // Created here, so that its stack has the line of the definition.
  made?.set(definition, new DefinitionError(`This ${owner} has no export of its own`, fix))
}

function authOf(value: unknown, owner: string): AuthMode {
  if (value === undefined) return 'none'
  const mode = AUTH_MODES.find((known) => known === value)
  if (mode !== undefined) return mode
  throw new DefinitionError(
    `${owner} auth is ${typeof value === 'string' ? `"${value}"` : kindOf(value)}`,
    `Use ${quotedList(AUTH_MODES)}, or leave auth out to accept every caller without an identity`,
  )
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

function usesOf(value: unknown, owner: string): FunctionUses {
  if (!isPlainObject(value)) {
    throw new DefinitionError(
      `${owner} uses is ${kindOf(value)}`,
      'Write { network: ["api.example.com"], secrets: ["API_KEY"], storage: "read" }',
    )
  }
  rejectUnknownOptions(value, ['network', 'secrets', 'storage'], `${owner} uses`)
  return {
    network: namesOf(value.network ?? [], `${owner} uses.network`, {
      fits: isHost,
      explain: explainHost,
      fix: 'Write a lower-case host as in a URL, such as "api.example.com" or "localhost:8080"',
    }),
    secrets: namesOf(value.secrets ?? [], `${owner} uses.secrets`, {
      fits: isConfigurationName,
      fix: 'Use upper-case letters, digits and _, at most 64 characters, such as API_KEY',
    }),
    ...storageOf(value.storage, owner),
  }
}

function storageOf(value: unknown, owner: string): Pick<FunctionUses, 'storage'> {
  if (value === undefined) return {}
  if (value === 'read' || value === 'write') return { storage: value }
  throw new DefinitionError(
    `${owner} uses.storage is ${typeof value === 'string' ? `"${value}"` : kindOf(value)}`,
    'Use "read" or "write", or leave it out',
  )
}

/** Returns the reason why a host is invalid; empty if it is not known. */
function explainHost(text: string): string {
  if (text.includes('/')) return ', which is more than a host'
  const name = text.replace(/:[^:]*$/, '')
  if (isHost(name)) return ', whose port is not from 1 to 65535'
  const last = name.slice(name.lastIndexOf('.') + 1)
  return /^[0-9]/.test(last) || /:.*:/.test(text) ? ', which is an IP address' : ''
}

interface NameRule {
  readonly fits: (name: string) => boolean
  /** Returns the end of the message about an invalid name. */
  readonly explain?: (name: string) => string
  readonly fix: string
}

function namesOf(
  value: unknown,
  path: string,
  { fits, explain = () => '', fix }: NameRule,
): readonly string[] {
  if (!Array.isArray(value)) {
    throw new DefinitionError(`${path} is ${kindOf(value)}`, 'Write a list of names')
  }
  for (const [i, name] of value.entries()) {
    if (typeof name !== 'string' || !fits(name)) {
      const shown = typeof name === 'string' ? `"${name}"${explain(name)}` : kindOf(name)
      throw new DefinitionError(`${path} lists ${shown}`, fix)
    }
    if (value.indexOf(name) !== i) {
      throw new DefinitionError(`${path} lists "${name}" twice`, 'List each name once')
    }
  }
  if (value.length > USES_MAX) {
    throw new DefinitionError(`${path} lists ${value.length} names`, `List at most ${USES_MAX}`)
  }
  return (value as string[]).toSorted()
}
