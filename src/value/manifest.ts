/**
 * What a Workspace package declares about itself. The manifest is RFC 8785 canonical JSON; the
 * server compares it with what the code says of itself inside the sandbox before it believes it.
 */
import { canonicalJson } from './canonical-json.ts'
import { isConfigurationName } from './configuration.ts'
import { AUTH_MODES, type AuthMode } from './identities.ts'
import { isId, isTableName, type ProjectId } from './ids.ts'
import { type Json, parseStrictJson } from './strict-json.ts'
import { ValidationError } from './validation-error.ts'
import { parseFields, parseValidator } from './validator-json.ts'
import type { FieldsJson, ValidatorJson } from './validators.ts'

export const FUNCTION_KINDS = ['query', 'mutation', 'action'] as const
export type FunctionKind = (typeof FUNCTION_KINDS)[number]
export type ClientKind = 'public' | 'confidential'
/** What an error that a Function declares means to its caller. */
export type DeclaredErrorKind = 'invalid' | 'forbidden' | 'not_found' | 'conflict'

/** What an Action may reach; it gets what it names and nothing else. Both lists are sorted. */
export interface FunctionUses {
  /** Hosts as they stand in a URL: a DNS name, with `:port` where it is not the scheme's own. */
  readonly network: readonly string[]
  /** Names of secrets of the Environment's configuration. */
  readonly secrets: readonly string[]
}

export interface FunctionManifest {
  /** `<path>.<export>`, such as `messages.list` or `admin/users.ban`. */
  readonly name: string
  readonly kind: FunctionKind
  readonly visibility: 'public' | 'internal'
  /** Kinds of Application Client that may call it; sorted. */
  readonly clients: readonly ClientKind[]
  /** Whom it sees of its callers. */
  readonly auth: AuthMode
  readonly arguments: FieldsJson
  readonly returns: ValidatorJson
  /** Codes without the APP_ prefix. */
  readonly errors: { readonly [code: string]: DeclaredErrorKind }
  /** Of an Action; absent in other kinds. */
  readonly uses?: FunctionUses
}

export interface IndexManifest {
  readonly name: string
  readonly fields: readonly string[]
  readonly unique: boolean
}

export interface TableManifest {
  readonly name: string
  readonly fields: FieldsJson
  /** Sorted by name. */
  readonly indexes: readonly IndexManifest[]
}

/** What the code says of itself: the part of a manifest that a runner can derive. */
export interface WorkspaceDescription {
  /** Sorted by name. */
  readonly functions: readonly FunctionManifest[]
  /** Sorted by name. */
  readonly tables: readonly TableManifest[]
}

export interface WorkspaceManifest extends WorkspaceDescription {
  readonly version: 1
  readonly projectId: ProjectId
  /** Workspace name, `[a-z][a-z0-9-]{0,62}`. */
  readonly workspace: string
  readonly artifact: {
    /** `sha256:` + 64 lowercase hex characters. */
    readonly digest: string
    readonly bytes: number
  }
}

export const WORKSPACE_NAME = /^[a-z][a-z0-9-]{0,62}$/
export const FUNCTION_NAME = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+)*\.[A-Za-z_$][A-Za-z0-9_$]*$/
export const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
export const INDEX_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
export const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/
const HOST = /^([a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?$/
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** Hosts, and secrets, that one Action may name. */
export const USES_MAX = 64
const DIGEST = /^sha256:[0-9a-f]{64}$/
/** `files` is the table of file IDs; it holds no documents. */
export const RESERVED_TABLES: readonly string[] = ['files']
export const FUNCTIONS_MAX = 4_096
export const TABLES_MAX = 1_000
export const INDEXES_MAX = 64
export const INDEX_FIELDS_MAX = 16
const ERROR_KINDS: readonly string[] = ['invalid', 'forbidden', 'not_found', 'conflict']

/** Canonical bytes only: the same manifest has one text. Throws Malformed. */
export function parseManifest(text: string): WorkspaceManifest {
  const json = parseStrictJson(text)
  const root = members(json, '$', [
    'version',
    'projectId',
    'workspace',
    'artifact',
    'functions',
    'tables',
  ])
  if (canonicalJson(json) !== text) throw new ValidationError('canonical JSON')
  if (root.version !== 1) throw new ValidationError('version 1', '$.version')
  if (!isId('prj', root.projectId)) throw new ValidationError('a Project ID', '$.projectId')
  const artifact = members(root.artifact, '$.artifact', ['digest', 'bytes'])
  const bytes = artifact.bytes
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 0) {
    throw new ValidationError('a byte count', '$.artifact.bytes')
  }
  return {
    version: 1,
    projectId: root.projectId,
    workspace: matching(root.workspace, WORKSPACE_NAME, '$.workspace'),
    artifact: { digest: matching(artifact.digest, DIGEST, '$.artifact.digest'), bytes },
    ...parseDescription({ functions: root.functions!, tables: root.tables! }),
  }
}

/** Checks every name, bound and cross reference of a description. Throws Malformed. */
export function parseDescription(json: Json): WorkspaceDescription {
  const root = members(json, '$', ['functions', 'tables'])
  const tables = list(root.tables, '$.tables', TABLES_MAX).map((table, i) =>
    parseTable(table, `$.tables[${i}]`),
  )
  ascending(tables, '$.tables')
  const functions = list(root.functions, '$.functions', FUNCTIONS_MAX).map((item, i) =>
    parseFunction(item, `$.functions[${i}]`),
  )
  ascending(functions, '$.functions')
  return { functions, tables }
}

/** Whether the text is a host as `uses.network` lists it: a lower-case name, no address. */
export function isHost(text: string): boolean {
  const [, name, port = '1'] = HOST.exec(text) ?? []
  if (name === undefined || name.length > 253 || Number(port) > 65_535) return false
  const labels = name.split('.')
  // The last label of an address, in whichever spelling, begins with a digit.
  return labels.every((label) => HOST_LABEL.test(label)) && !/^[0-9]/.test(labels.at(-1)!)
}

const FUNCTION_KEYS = 'name kind visibility clients auth arguments returns errors'.split(' ')

function parseFunction(json: Json, path: string): FunctionManifest {
  const isAction = (json as { readonly kind?: Json } | null)?.kind === 'action'
  const item = members(json, path, isAction ? [...FUNCTION_KEYS, 'uses'] : FUNCTION_KEYS)
  const clients = list(item.clients, `${path}.clients`, 2)
  const allowed: readonly Json[] = ['confidential', 'public']
  if (clients.some((client, i) => !allowed.includes(client) || clients.indexOf(client) !== i)) {
    throw new ValidationError('client kinds, each once', `${path}.clients`)
  }
  if (canonicalJson(clients) !== canonicalJson(clients.toSorted())) {
    throw new ValidationError('sorted client kinds', `${path}.clients`)
  }
  const errors: Record<string, DeclaredErrorKind> = {}
  for (const [code, kind] of Object.entries(members(item.errors, `${path}.errors`))) {
    matching(code, ERROR_CODE, `${path}.errors`)
    errors[code] = oneOf(kind, ERROR_KINDS, `${path}.errors.${code}`) as DeclaredErrorKind
  }
  return {
    name: matching(item.name, FUNCTION_NAME, `${path}.name`),
    kind: oneOf(item.kind, FUNCTION_KINDS, `${path}.kind`) as FunctionKind,
    visibility: oneOf(item.visibility, ['public', 'internal'], `${path}.visibility`) as 'public',
    clients: clients as ClientKind[],
    auth: oneOf(item.auth, AUTH_MODES, `${path}.auth`) as AuthMode,
    arguments: parseFields(item.arguments!, `${path}.arguments`),
    returns: parseValidator(item.returns!, `${path}.returns`),
    errors,
    ...(isAction && { uses: parseUses(item.uses, `${path}.uses`) }),
  }
}

function parseUses(json: Json | undefined, path: string): FunctionUses {
  const item = members(json, path, ['network', 'secrets'])
  const names = (key: 'network' | 'secrets', isName: (text: string) => boolean, rule: string) => {
    const found = list(item[key], `${path}.${key}`, USES_MAX).map((name, i) => {
      if (typeof name === 'string' && isName(name)) return { name }
      throw new ValidationError(rule, `${path}.${key}[${i}]`)
    })
    ascending(found, `${path}.${key}`)
    return found.map(({ name }) => name)
  }
  return {
    network: names('network', isHost, 'a host'),
    secrets: names('secrets', isConfigurationName, 'the name of a secret'),
  }
}

function parseTable(json: Json, path: string): TableManifest {
  const item = members(json, path, ['name', 'fields', 'indexes'])
  if (typeof item.name !== 'string' || !isTableName(item.name)) {
    throw new ValidationError('a table name', `${path}.name`)
  }
  if (RESERVED_TABLES.includes(item.name))
    throw new ValidationError('a free table name', `${path}.name`)
  const fields = parseFields(item.fields!, `${path}.fields`)
  for (const name of Object.keys(fields)) matching(name, FIELD_NAME, `${path}.fields`)
  const indexes = list(item.indexes, `${path}.indexes`, INDEXES_MAX).map((index, i) =>
    parseIndex(index, fields, `${path}.indexes[${i}]`),
  )
  ascending(indexes, `${path}.indexes`)
  return { name: item.name, fields, indexes }
}

function parseIndex(json: Json, tableFields: FieldsJson, path: string): IndexManifest {
  const item = members(json, path, ['name', 'fields', 'unique'])
  const fields = list(item.fields, `${path}.fields`, INDEX_FIELDS_MAX)
  if (fields.length === 0) throw new ValidationError('at least one field', `${path}.fields`)
  fields.forEach((field, i) => {
    if (typeof field !== 'string' || !Object.hasOwn(tableFields, field)) {
      throw new ValidationError('a field of the table', `${path}.fields[${i}]`)
    }
    if (fields.indexOf(field) !== i)
      throw new ValidationError('each field once', `${path}.fields[${i}]`)
  })
  if (typeof item.unique !== 'boolean') throw new ValidationError('a boolean', `${path}.unique`)
  return {
    name: matching(item.name, INDEX_NAME, `${path}.name`),
    fields: fields as string[],
    unique: item.unique,
  }
}

function members(json: Json | undefined, path: string, keys?: readonly string[]) {
  if (json === null || json === undefined || typeof json !== 'object' || Array.isArray(json)) {
    throw new ValidationError('an object', path)
  }
  if (keys !== undefined) {
    for (const key of Object.keys(json)) {
      if (!keys.includes(key)) throw new ValidationError('no unknown field', `${path}.${key}`)
    }
    for (const key of keys) {
      if (!Object.hasOwn(json, key)) throw new ValidationError('a required field', `${path}.${key}`)
    }
  }
  return json
}

function list(json: Json | undefined, path: string, most: number): Json[] {
  if (!Array.isArray(json)) throw new ValidationError('an array', path)
  if (json.length > most) throw new ValidationError(`at most ${most} entries`, path)
  return json
}

function matching(json: Json | undefined, form: RegExp, path: string): string {
  if (typeof json !== 'string' || !form.test(json))
    throw new ValidationError('an allowed name', path)
  return json
}

function oneOf(json: Json | undefined, allowed: readonly string[], path: string): string {
  if (typeof json !== 'string' || !allowed.includes(json)) {
    throw new ValidationError(`one of ${allowed.join(', ')}`, path)
  }
  return json
}

function ascending(items: readonly { readonly name: string }[], path: string): void {
  for (let i = 1; i < items.length; i++) {
    if (items[i - 1]!.name >= items[i]!.name)
      throw new ValidationError('names in order, each once', path)
  }
}
