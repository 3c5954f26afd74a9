/** Application Clients and their credentials. Responses with a key are never cached. */
import {
  type ApplicationClient,
  createClient,
  listClients,
} from '../../product/application-clients/application-clients.ts'
import {
  type ApplicationCredential,
  type CredentialCreated as Created,
  createCredential,
  deleteCredential,
  listCredentials,
  revealKey,
  revokeCredential,
  rotateCredential,
} from '../../product/application-clients/application-credentials.ts'
import {
  ClientCreated,
  type ClientField,
  ClientList,
  ClientRequest,
  CredentialCreated,
  type CredentialField,
  CredentialList,
  CredentialRequest,
  CredentialRevoked,
  RotateRequest,
} from '../../wire/application-clients.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type ReplyOf, type Route } from './route.ts'

const ISSUED = { 200: CredentialCreated, 201: CredentialCreated } as const

export const applicationClientRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/application-clients',
    name: 'listApplicationClients',
    summary: 'Lists every Application Client, without keys.',
    capability: 'credentials:read',
    replies: { 200: ClientList },
    handle({ app }) {
      const body: ClientList = { version: 1, clients: listClients(app.product).map(clientField) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients',
    name: 'createApplicationClient',
    summary: 'Creates an Application Client with the ID that the caller chose.',
    capability: 'credentials:manage',
    body: { schema: ClientRequest },
    replies: { 200: ClientCreated, 201: ClientCreated },
    errors: ['PRODUCT_INVALID', 'PRODUCT_OPERATION_REUSED', 'PRODUCT_STATE_CONFLICT'],
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
    name: 'listCredentials',
    summary: 'Lists every credential of an Application Client, without keys.',
    capability: 'credentials:read',
    replies: { 200: CredentialList },
    handle({ app, params }) {
      const credentials = listCredentials(app.product, params.clientId)
      const body: CredentialList = { version: 1, credentials: credentials.map(credentialField) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients/:clientId/credentials',
    name: 'createCredential',
    summary: 'Creates a credential. Only this response contains its key.',
    capability: 'credentials:manage',
    body: { schema: CredentialRequest },
    replies: ISSUED,
    errors: ['PRODUCT_INVALID', 'PRODUCT_OPERATION_REUSED', 'PRODUCT_STATE_CONFLICT'],
    cache: 'no-store, max-age=0',
    handle({ app, actor, params, body: asked, requestId }) {
      const created = createCredential(app.product, actor, {
        clientId: params.clientId,
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
    name: 'rotateCredential',
    summary: 'Creates a replacement. The credential stays active until it is revoked.',
    capability: 'credentials:manage',
    body: { schema: RotateRequest },
    replies: ISSUED,
    errors: ['PRODUCT_INVALID', 'PRODUCT_OPERATION_REUSED', 'PRODUCT_STATE_CONFLICT'],
    cache: 'no-store, max-age=0',
    handle({ app, actor, params, body: asked, requestId }) {
      const { credentialId: replacementId, createdAtMicros, ...changes } = asked
      const rotated = rotateCredential(app.product, actor, {
        clientId: params.clientId,
        credentialId: params.credentialId,
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
    name: 'revealKey',
    summary: 'Returns the key of a public credential.',
    capability: 'credentials:read',
    replies: { 200: CredentialCreated },
    errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
    cache: 'no-store, max-age=0',
    handle({ app, actor, params: { clientId, credentialId }, requestId }) {
      const revealed = revealKey(app.product, actor, { clientId, credentialId, requestId })
      // No credential was created, so the response is no replay.
      const body = createdBody({ ...revealed, secretShownOnce: false, replayed: false })
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/application-clients/:clientId/credentials/:credentialId/revoke',
    name: 'revokeCredential',
    summary: 'Revokes a credential permanently.',
    capability: 'credentials:manage',
    replies: { 200: CredentialRevoked },
    handle({ app, actor, params: { clientId, credentialId }, requestId }) {
      const name = { clientId, credentialId }
      const credential = revokeCredential(app.product, actor, { ...name, requestId })
      const body: CredentialRevoked = { version: 1, credential: credentialField(credential) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'DELETE',
    path: '/application-clients/:clientId/credentials/:credentialId',
    name: 'deleteCredential',
    summary: 'Deletes a revoked credential and keeps a tombstone.',
    capability: 'credentials:manage',
    replies: { 204: null },
    errors: ['PRODUCT_STATE_CONFLICT'],
    handle({ app, actor, params: { clientId, credentialId }, requestId }) {
      deleteCredential(app.product, actor, { clientId, credentialId, requestId })
      return { status: 204 }
    },
  }),
]

function createdReply(created: Created): ReplyOf<typeof ISSUED> {
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
