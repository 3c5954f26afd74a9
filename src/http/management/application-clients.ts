/** Application Clients and their credentials. Answers that carry a key are never cached. */
import {
  type ApplicationClient,
  createClient,
  listClients,
} from '../../product/application-clients.ts'
import {
  type ApplicationCredential,
  createCredential,
  listCredentials,
} from '../../product/application-credentials.ts'
import { parseId } from '../../value/ids.ts'
import {
  type ClientCreated,
  type ClientField,
  type ClientList,
  ClientRequest,
  type CredentialCreated,
  type CredentialField,
  type CredentialList,
  CredentialRequest,
} from '../../wire/application-clients.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

export const applicationClientRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/application-clients',
    capability: 'credentials:read',
    handle({ app }) {
      const body: ClientList = { version: 1, clients: listClients(app.product).map(clientField) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients',
    capability: 'credentials:manage',
    body: { schema: ClientRequest },
    handle({ app, actor, body: { createdAtMicros, ...asked }, requestId }) {
      const { client, replayed } = createClient(app.product, actor, {
        ...asked,
        createdAtMicros: BigInt(createdAtMicros),
        requestId,
      })
      const body: ClientCreated = { version: 1, client: clientField(client), replayed }
      return { status: replayed ? 200 : 201, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/application-clients/:clientId/credentials',
    capability: 'credentials:read',
    handle({ app, params }) {
      const credentials = listCredentials(app.product, parseId('app', params.clientId))
      const body: CredentialList = { version: 1, credentials: credentials.map(credentialField) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients/:clientId/credentials',
    capability: 'credentials:manage',
    body: { schema: CredentialRequest },
    cache: 'no-store, max-age=0',
    handle({ app, actor, params, body: asked, requestId }) {
      const { credential, key, secretShownOnce, replayed } = createCredential(app.product, actor, {
        clientId: parseId('app', params.clientId),
        credentialId: asked.credentialId,
        name: asked.name,
        scopes: asked.scopes,
        rateLimit: asked.rateLimit ?? null,
        createdAtMicros: BigInt(asked.createdAtMicros),
        requestId,
      })
      const body: CredentialCreated = {
        version: 1,
        credential: credentialField(credential),
        key: key?.reveal() ?? null,
        secretShownOnce,
        replayed,
      }
      return { status: replayed ? 200 : 201, body }
    },
  }),
]

function clientField({
  maximumScopes,
  createdAtMicros,
  ...client
}: ApplicationClient): ClientField {
  return {
    ...client,
    maximumScopes: [...maximumScopes],
    createdAtMicros: String(createdAtMicros),
  }
}

function credentialField(credential: ApplicationCredential): CredentialField {
  const { createdAtMicros, revokedAtMicros, lastUsedAtMicros } = credential
  return {
    credentialId: credential.credentialId,
    clientId: credential.clientId,
    name: credential.name,
    scopes: [...credential.scopes],
    state: credential.state,
    createdAtMicros: String(createdAtMicros),
    revokedAtMicros: revokedAtMicros === null ? null : String(revokedAtMicros),
    lastUsedAtMicros: lastUsedAtMicros === null ? null : String(lastUsedAtMicros),
    rateLimit: credential.rateLimit,
    replaces: credential.replaces,
  }
}
