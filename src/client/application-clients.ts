/** The routes of Application Clients and their credentials, one function each. */
import type { ClientId, CredentialId } from '../value/ids.ts'
import {
  ClientCreated,
  ClientList,
  CredentialCreated,
  CredentialList,
  CredentialRevoked,
} from '../wire/application-clients.ts'
import type { Remote } from './remotes.ts'

export interface NewClient {
  readonly clientId: ClientId
  readonly name: string
  readonly kind: string
  readonly maximumScopes: string[]
  readonly createdAtMicros: string
}

export function createClient({ session, base }: Remote, client: NewClient) {
  return session.management({
    method: 'POST',
    path: `${base}/application-clients`,
    body: { ...client },
    reply: ClientCreated,
    replay: 'safe',
  })
}

export function listClients({ session, base }: Remote) {
  return session.management({
    method: 'GET',
    path: `${base}/application-clients`,
    reply: ClientList,
    replay: 'safe',
  })
}

export interface NewCredential {
  readonly credentialId: CredentialId
  readonly name: string
  readonly scopes: string[]
  readonly createdAtMicros: string
  readonly rateLimit?: number
}

/** The fields of a replacement; omitted ones keep the value of the replaced credential. */
export type Replacement = Pick<NewCredential, 'credentialId' | 'createdAtMicros'> &
  Partial<NewCredential>

export interface CredentialPath {
  readonly clientId: ClientId
  readonly credentialId: CredentialId
}

/**
 * Creates a credential. The request is never repeated after a lost response: a second secret key
 * would not match the stored digest.
 */
export function createCredential(
  { session, base }: Remote,
  clientId: ClientId,
  credential: NewCredential,
) {
  return session.management({
    method: 'POST',
    path: `${base}/application-clients/${clientId}/credentials`,
    subjects: { clientId },
    body: { ...credential },
    reply: CredentialCreated,
    replay: 'unsafe',
  })
}

/** Replaces a credential. The request is never repeated, for the reason of `createCredential`. */
export function rotateCredential(
  { session, base }: Remote,
  source: CredentialPath,
  replacement: Replacement,
) {
  return session.management({
    method: 'POST',
    path: `${base}${credentialPath(source)}/rotate`,
    subjects: { ...source },
    body: { ...replacement },
    reply: CredentialCreated,
    replay: 'unsafe',
  })
}

export function revealKey({ session, base }: Remote, credential: CredentialPath) {
  return session.management({
    method: 'POST',
    path: `${base}${credentialPath(credential)}/reveal`,
    subjects: { ...credential },
    reply: CredentialCreated,
    replay: 'safe',
  })
}

export function revokeCredential({ session, base }: Remote, credential: CredentialPath) {
  return session.management({
    method: 'POST',
    path: `${base}${credentialPath(credential)}/revoke`,
    subjects: { ...credential },
    reply: CredentialRevoked,
    replay: 'safe',
  })
}

export async function deleteCredential(
  { session, base }: Remote,
  credential: CredentialPath,
): Promise<void> {
  await session.management({
    method: 'DELETE',
    path: `${base}${credentialPath(credential)}`,
    subjects: { ...credential },
    reply: null,
    replay: 'safe',
  })
}

function credentialPath({ clientId, credentialId }: CredentialPath): string {
  return `/application-clients/${clientId}/credentials/${credentialId}`
}

export function listCredentials({ session, base }: Remote, clientId: ClientId) {
  return session.management({
    method: 'GET',
    path: `${base}/application-clients/${clientId}/credentials`,
    subjects: { clientId },
    reply: CredentialList,
    replay: 'safe',
  })
}
