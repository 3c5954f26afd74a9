/** Application Clients and their credentials. Answers that carry a key are never cached. */
import {
  type ApplicationClient,
  createClient,
  listClients,
} from '../../product/application-clients.ts'
import {
  type ApplicationCredential,
  type CredentialCreated as Created,
  type CredentialName,
  createCredential,
  deleteCredential,
  listCredentials,
  revealKey,
  revokeCredential,
  rotateCredential,
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
  type CredentialRevoked,
  RotateRequest,
} from '../../wire/application-clients.ts'
import { environmentRoute, type Reply, type Route } from '../route.ts'
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
      const created = createCredential(app.product, actor, {
        clientId: parseId('app', params.clientId),
        credentialId: asked.credentialId,
        name: asked.name,
        scopes: asked.scopes,
        rateLimit: asked.rateLimit ?? null,
        createdAtMicros: BigInt(asked.createdAtMicros),
        requestId,
      })
      return createdReply(created)
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients/:clientId/credentials/:credentialId/rotate',
    capability: 'credentials:manage',
    body: { schema: RotateRequest },
    cache: 'no-store, max-age=0',
    handle({ app, actor, params, body: asked, requestId }) {
      const { credentialId: replacementId, createdAtMicros, ...changes } = asked
      const rotated = rotateCredential(app.product, actor, {
        ...readName(params),
        replacementId,
        changes,
        createdAtMicros: BigInt(createdAtMicros),
        requestId,
      })
      return createdReply(rotated)
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients/:clientId/credentials/:credentialId/reveal',
    capability: 'credentials:read',
    cache: 'no-store, max-age=0',
    handle({ app, actor, params, requestId }) {
      const revealed = revealKey(app.product, actor, { ...readName(params), requestId })
      // Nothing was made, so nothing was repeated.
      const body = createdBody({ ...revealed, secretShownOnce: false, replayed: false })
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients/:clientId/credentials/:credentialId/revoke',
    capability: 'credentials:manage',
    handle({ app, actor, params, requestId }) {
      const credential = revokeCredential(app.product, actor, { ...readName(params), requestId })
      const body: CredentialRevoked = { version: 1, credential: credentialField(credential) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'DELETE',
    path: '/application-clients/:clientId/credentials/:credentialId',
    capability: 'credentials:manage',
    handle({ app, actor, params, requestId }) {
      deleteCredential(app.product, actor, { ...readName(params), requestId })
      return { status: 204 }
    },
  }),
]

function readName(params: {
  readonly clientId: string
  readonly credentialId: string
}): CredentialName {
  return {
    clientId: parseId('app', params.clientId),
    credentialId: parseId('crd', params.credentialId),
  }
}

function createdReply(created: Created): Reply {
  return { status: created.replayed ? 200 : 201, body: createdBody(created) }
}

function createdBody({ credential, key, secretShownOnce, replayed }: Created): CredentialCreated {
  return {
    version: 1,
    credential: credentialField(credential),
    key: key?.reveal() ?? null,
    secretShownOnce,
    replayed,
  }
}

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
