/**
 * The development key of a local root, with which programs of this machine synchronize Workspaces.
 * Its file in the root is readable by this user alone, like the keyring of all keys.
 */
import { join } from 'node:path'
import type { RecordedActor } from '../../identity/actor.ts'
import { createClient, listClients } from '../../product/application-clients/application-clients.ts'
import {
  type CredentialPorts,
  createCredential,
  listCredentials,
  revokeCredential,
} from '../../product/application-clients/application-keys.ts'
import type { ApplicationKeys } from '../../product/application-clients/key-verification.ts'
import { DEVELOPMENT_KEY_FILE } from '../../storage/root.ts'
import { readSecretFile, writeFileAtomic } from '../../system/files.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId } from '../../value/ids.ts'

const NAME = 'svc dev'
const SCOPES: readonly ApplicationScope[] = ['workspace']
const BYTES_MAX = 256

interface Ports extends CredentialPorts {
  readonly keys: Pick<ApplicationKeys, 'forget' | 'authenticate'>
}

/**
 * Returns the path of the file. Replaces a lost or inactive key by a new one, and revokes earlier
 * ones.
 */
export function localDevelopmentKey(ports: Ports, actor: RecordedActor, rootPath: string): string {
  const path = join(rootPath, DEVELOPMENT_KEY_FILE)
  const kept = readKey(path)
  if (kept !== null && ports.keys.authenticate(kept)?.kind === 'development') return path
  const { ids } = ports.system
  const recorded = { createdAtMicros: ports.system.nowMicros(), requestId: ids.make('req') }
  const clientId = findClient(ports) ?? ids.make('app')
  if (findClient(ports) === null) {
    const client = { clientId, name: NAME, kind: 'development', maximumScopes: SCOPES } as const
    createClient(ports, actor, { ...client, ...recorded })
  }
  for (const { credentialId, state } of listCredentials(ports, clientId)) {
    if (state === 'active') revokeCredential(ports, actor, { clientId, credentialId, ...recorded })
  }
  const credential = { credentialId: ids.make('crd'), name: NAME, scopes: SCOPES, rateLimit: null }
  const { key } = createCredential(ports, actor, { clientId, ...credential, ...recorded })
  writeFileAtomic(path, `${key!.reveal()}\n`)
  return path
}

function findClient(ports: Ports): ClientId | null {
  const found = listClients(ports).find(({ name, kind }) => {
    return name === NAME && kind === 'development'
  })
  return found?.clientId ?? null
}

/** Reads the key; null if the file is missing or malformed. */
function readKey(path: string): string | null {
  try {
    return new TextDecoder().decode(readSecretFile(path, { bytesMax: BYTES_MAX })).trim()
  } catch {
    return null
  }
}
