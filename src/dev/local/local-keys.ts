/** The Application Key that `svc dev` prints. It stays the same for one root. */
import type { RecordedActor } from '../../identity/actor.ts'
import { createClient, listClients } from '../../product/application-clients/application-clients.ts'
import {
  type CredentialPorts,
  createCredential,
  listCredentials,
  revealKey,
} from '../../product/application-clients/application-credentials.ts'
import { APPLICATION_SCOPES } from '../../value/application-scopes.ts'
import { parseId } from '../../value/ids.ts'
import type { Secret } from '../../value/secret.ts'

const NAME = 'svc dev'

/** Returns a public key with every scope. Creates its Application Client at the first call. */
export function localApplicationKey(ports: CredentialPorts, actor: RecordedActor): Secret {
  const { system } = ports
  // Both IDs follow from the Environment: public keys are derived, so the key survives a reset.
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
