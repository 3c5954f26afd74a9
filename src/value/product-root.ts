/**
 * The two files that make a directory a Product root: `service.json` says which Environment it is,
 * `keyring.json` holds the keys that everything secret in it derives from. Both sides share these
 * forms; opening, ownership and modes are left to whoever touches the disk.
 */
import { decodeBase64Url, encodeBase64Url } from './base64url.ts'
import { canonicalJson } from './canonical-json.ts'
import { type EnvironmentId, type ProjectId, parseId } from './ids.ts'
import { Malformed } from './malformed.ts'
import { isName } from './names.ts'
import { type Json, parseStrictJson } from './strict-json.ts'
import { parseInt64 } from './tagged.ts'

export const DESCRIPTOR_FILE = 'service.json'
export const KEYRING_FILE = 'keyring.json'
/** Bytes of either file. */
export const ROOT_FILE_BYTES_MAX = 64 * 1024

export interface RootDescriptor {
  readonly version: 1
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
  /** 1 to 128 characters. */
  readonly name: string
  readonly slug: string
  readonly createdAtMicros: bigint
  /** Directory of the Workspace's source, absolute or relative to the root. */
  readonly workspace: string | null
  /** `host:port` for applications, as `svc init --listen` was told; nothing reads it yet. */
  readonly listen: string | null
}

export interface KeyringKey {
  readonly id: string
  /** 32 bytes. */
  readonly key: Uint8Array
  readonly createdAtMicros: bigint
}

export interface KeyringFile {
  readonly version: 1
  readonly keys: readonly KeyringKey[]
  /** The key that new material derives from. The others only read. */
  readonly active: string
}

export const KEY_BYTES = 32
/** Keys of one keyring. */
export const KEYS_MAX = 64
const SLUG = /^[a-z][a-z0-9-]{0,62}$/
const KEY_ID = /^[a-z0-9][a-z0-9-]{0,31}$/
const TEXT_MAX = 4_096
/** What a double holds exactly; the year 2255. */
const MICROS_MAX = BigInt(Number.MAX_SAFE_INTEGER)

/** Canonical JSON and a line feed. */
export function formatRootDescriptor(descriptor: RootDescriptor): string {
  const { createdAtMicros, ...rest } = descriptor
  return `${canonicalJson({ ...rest, createdAtMicros: String(createdAtMicros) })}\n`
}

/** Any layout of white space, since people edit it; every other liberty is Malformed. */
export function parseRootDescriptor(text: Uint8Array | string): RootDescriptor {
  const root = members(parseStrictJson(text), '$', [
    'version',
    'projectId',
    'environmentId',
    'name',
    'slug',
    'createdAtMicros',
    'workspace',
    'listen',
  ])
  if (root.version !== 1) throw new Malformed('version 1', '$.version')
  const name = string(root.name, '$.name')
  if (!isName(name)) throw new Malformed('1 to 128 characters, none of them a control', '$.name')
  const slug = string(root.slug, '$.slug')
  if (!SLUG.test(slug)) throw new Malformed('a slug such as my-app', '$.slug')
  return {
    version: 1,
    projectId: parseId('prj', string(root.projectId, '$.projectId')),
    environmentId: parseId('env', string(root.environmentId, '$.environmentId')),
    name,
    slug,
    createdAtMicros: micros(root.createdAtMicros, '$.createdAtMicros'),
    workspace: optionalText(root.workspace, '$.workspace'),
    listen: optionalText(root.listen, '$.listen'),
  }
}

/** Canonical JSON and a line feed. The text is as secret as the keys in it. */
export function formatKeyring(keyring: KeyringFile): string {
  const keys = keyring.keys.map(({ id, key, createdAtMicros }) => ({
    id,
    key: encodeBase64Url(key),
    createdAtMicros: String(createdAtMicros),
  }))
  return `${canonicalJson({ version: 1, keys, active: keyring.active })}\n`
}

/** Throws Malformed; its message never has a key in it. */
export function parseKeyring(text: Uint8Array | string): KeyringFile {
  const root = members(parseStrictJson(text), '$', ['version', 'keys', 'active'])
  if (root.version !== 1) throw new Malformed('version 1', '$.version')
  if (!Array.isArray(root.keys) || root.keys.length === 0 || root.keys.length > KEYS_MAX) {
    throw new Malformed(`1 to ${KEYS_MAX} keys`, '$.keys')
  }
  const keys = root.keys.map((item, i) => parseKey(item, `$.keys[${i}]`))
  if (new Set(keys.map((key) => key.id)).size !== keys.length) {
    throw new Malformed('each key ID once', '$.keys')
  }
  const active = string(root.active, '$.active')
  if (!keys.some((key) => key.id === active)) throw new Malformed('the ID of a key', '$.active')
  return { version: 1, keys, active }
}

function parseKey(json: Json, path: string): KeyringKey {
  const item = members(json, path, ['id', 'key', 'createdAtMicros'])
  const id = string(item.id, `${path}.id`)
  if (!KEY_ID.test(id)) throw new Malformed('a key ID', `${path}.id`)
  const key = decodeBase64Url(string(item.key, `${path}.key`))
  if (key.length !== KEY_BYTES) throw new Malformed(`${KEY_BYTES} bytes`, `${path}.key`)
  return { id, key, createdAtMicros: micros(item.createdAtMicros, `${path}.createdAtMicros`) }
}

function members(json: Json, path: string, keys: readonly string[]): { [key: string]: Json } {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new Malformed('an object', path)
  }
  for (const key of Object.keys(json)) {
    if (!keys.includes(key)) throw new Malformed('no unknown field', `${path}.${key}`)
  }
  for (const key of keys) {
    if (!Object.hasOwn(json, key)) throw new Malformed('a required field', `${path}.${key}`)
  }
  return json
}

function string(json: Json | undefined, path: string): string {
  if (typeof json !== 'string') throw new Malformed('a string', path)
  return json
}

function optionalText(json: Json | undefined, path: string): string | null {
  if (json === null) return null
  const text = string(json, path)
  if (text === '' || text.length > TEXT_MAX || text.includes('\0')) {
    throw new Malformed('a text or null', path)
  }
  return text
}

function micros(json: Json | undefined, path: string): bigint {
  const value = parseInt64(string(json, path), path)
  if (value < 0n || value > MICROS_MAX) throw new Malformed('Unix microseconds', path)
  return value
}
