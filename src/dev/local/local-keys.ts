/**
 * Issues the Application Keys of `svc dev`: the public one that it prints, which stays the same for
 * one root, and the confidential one of its commands.
 */
import type { RecordedActor } from '../../identity/actor.ts'
import { createClient, listClients } from '../../product/application-clients/application-clients.ts'
import {
  type CredentialPorts,
  createCredential,
  deleteCredential,
  listCredentials,
  revealKey,
  revokeCredential,
} from '../../product/application-clients/application-keys.ts'
import { APPLICATION_SCOPES } from '../../value/application-scopes.ts'
import { parseId } from '../../value/ids.ts'
import type { Secret } from '../../value/secret.ts'

const NAME = 'svc dev'
const OF_COMMANDS = 'svc dev commands'

/** Returns a public key with every scope. Creates its Application Client at the first call. */
export function localApplicationKey(ports: CredentialPorts, actor: RecordedActor): Secret {
  const { system } = ports
  // Both IDs are derived from the Environment, and a public key from its IDs: it survives a reset.
  const unique = ports.root.descriptor.environmentId.slice('env_'.length)
  const clientId = parseId('app', `app_${unique}`)
  const requestId = system.ids.make('req')
  const recorded = { createdAtMicros: system.nowMicros(), requestId }
  if (!listClients(ports).some((client) => client.clientId === clientId)) {
    const maximumScopes = APPLICATION_SCOPES
    createClient(ports, actor, { clientId, name: NAME, kind: 'public', maximumScopes, ...recorded })
  }
  const credentials = listCredentials(ports, clientId)
  const active = credentials.find(({ state }) => state === 'active')
  if (active !== undefined) {
    const { credentialId } = active
    return revealKey(ports, actor, { clientId, credentialId, requestId }).key
  }
  const first = parseId('crd', `crd_${unique}`)
  const isUsed = credentials.some(({ credentialId }) => credentialId === first)
  const credentialId = isUsed ? system.ids.make('crd') : first
  const input = { clientId, credentialId, name: NAME, scopes: APPLICATION_SCOPES, rateLimit: null }
  return createCredential(ports, actor, { ...input, ...recorded }).key!
}

/**
 * Creates a confidential key with every scope, with which commands call Functions that public keys
 * may not call. It is a new one for each process, since a confidential key is shown only once.
 */
export function localConfidentialKey(ports: CredentialPorts, actor: RecordedActor): Secret {
  const { ids } = ports.system
  const recorded = { createdAtMicros: ports.system.nowMicros(), requestId: ids.make('req') }
  const known = listClients(ports).find(({ name, kind }) => {
    return name === OF_COMMANDS && kind === 'confidential'
  })
  const clientId = known?.clientId ?? ids.make('app')
  const scopes = APPLICATION_SCOPES
  if (known === undefined) {
    const client = { clientId, name: OF_COMMANDS, kind: 'confidential' } as const
    createClient(ports, actor, { ...client, maximumScopes: scopes, ...recorded })
  }
  for (const { credentialId, state } of listCredentials(ports, clientId)) {
    const credential = { clientId, credentialId, requestId: recorded.requestId }
    if (state === 'active') revokeCredential(ports, actor, credential)
    if (state !== 'deleted') deleteCredential(ports, actor, credential)
  }
  const credential = { credentialId: ids.make('crd'), name: OF_COMMANDS, scopes, rateLimit: null }
  return createCredential(ports, actor, { clientId, ...credential, ...recorded }).key!
}
