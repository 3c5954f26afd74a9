/**
 * The two files that make a directory a Product root: `service.json` identifies the Environment,
 * `keyring.json` holds the root keys of all its secrets. Client and server share these forms;
 * wire/files/product-root.ts reads them. The caller opens the files and checks their owner and
 * mode.
 */
import { encodeBase64Url } from './base64url.ts'
import { canonicalJson } from './canonical-json.ts'
import {
  type EnvironmentId,
  type OperatorId,
  type ProjectId,
  parseId,
  type SessionId,
} from './ids.ts'

export const DESCRIPTOR_FILE = 'service.json'
export const KEYRING_FILE = 'keyring.json'
/** Names the `svc dev` that serves the root; wire/files/local-server.ts has its form. */
export const LOCAL_SERVER_FILE = 'dev.json'
/** The directory of what the server orders by ACME: the account, the certificate, its orders. */
export const ACME_DIRECTORY = 'acme'
/** Most bytes of each file. */
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
  /** `host:port` for applications, from `svc init --listen`. Not read yet. */
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
  /** Key of new material. The other keys only decrypt or verify existing material. */
  readonly active: string
}

export const KEY_BYTES = 32
/** Keys of one keyring. */
export const KEYS_MAX = 64

/** Returns canonical JSON and a line feed. */
export function formatRootDescriptor(descriptor: RootDescriptor): string {
  const { createdAtMicros, ...rest } = descriptor
  return `${canonicalJson({ ...rest, createdAtMicros: String(createdAtMicros) })}\n`
}

/** Returns canonical JSON and a line feed. The text is as secret as the keys in it. */
export function formatKeyring(keyring: KeyringFile): string {
  const keys = keyring.keys.map(({ id, key, createdAtMicros }) => ({
    id,
    key: encodeBase64Url(key),
    createdAtMicros: String(createdAtMicros),
  }))
  return `${canonicalJson({ version: 1, keys, active: keyring.active })}\n`
}

/** The author at this machine, under whose name `svc dev` records changes. */
export interface LocalAuthor {
  readonly operatorId: OperatorId
  readonly sessionId: SessionId
  /** No derived session. */
  readonly purpose: null
}

/** Returns the same author for an Environment each time. No login ever has these IDs. */
export function localAuthor(environmentId: EnvironmentId): LocalAuthor {
  const unique = environmentId.slice('env_'.length)
  const operatorId = parseId('opr', `opr_${unique}`)
  return { operatorId, sessionId: parseId('ops', `ops_${unique}`), purpose: null }
}
