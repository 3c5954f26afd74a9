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
} from '../../product/application-clients/application-keys.ts'
import type {
  ClientCreated,
  ClientField,
  ClientList,
  CredentialCreated,
  CredentialField,
  CredentialList,
  CredentialRevoked,
} from '../../wire/application-clients.ts'
import { applicationClientOperations } from '../../wire/operations/application-clients.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type ReplyOf, type Route } from './route.ts'

export const applicationClientRoutes: readonly Route<ProductApp>[] = bind(
  applicationClientOperations,
  {
    listApplicationClients({ app }) {
      const body: ClientList = { version: 1, clients: listClients(app.product).map(clientField) }
      return { status: 200, body }
    },

    createApplicationClient({ app, actor, body: { createdAtMicros, ...asked }, requestId }) {
      const { client, replayed } = createClient(app.product, actor, {
        ...asked,
        createdAtMicros: BigInt(createdAtMicros),
        requestId,
      })
      const body: ClientCreated = { version: 1, client: clientField(client), replayed }
      return { status: replayed ? 200 : 201, body }
    },

    listCredentials({ app, params }) {
      const credentials = listCredentials(app.product, params.clientId)
      const body: CredentialList = { version: 1, credentials: credentials.map(credentialField) }
      return { status: 200, body }
    },

    createCredential({ app, actor, params, body: asked, requestId }) {
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

    rotateCredential({ app, actor, params, body: asked, requestId }) {
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

    revealKey({ app, actor, params: { clientId, credentialId }, requestId }) {
      const revealed = revealKey(app.product, actor, { clientId, credentialId, requestId })
      // No credential was created, so the response is not a replay.
      const body = createdBody({ ...revealed, secretShownOnce: false, replayed: false })
      return { status: 200, body }
    },

    revokeCredential({ app, actor, params: { clientId, credentialId }, requestId }) {
      const name = { clientId, credentialId }
      const credential = revokeCredential(app.product, actor, { ...name, requestId })
      const body: CredentialRevoked = { version: 1, credential: credentialField(credential) }
      return { status: 200, body }
    },

    deleteCredential({ app, actor, params: { clientId, credentialId }, requestId }) {
      deleteCredential(app.product, actor, { clientId, credentialId, requestId })
      return { status: 204 }
    },
  },
)

function createdReply(
  created: Created,
): ReplyOf<(typeof applicationClientOperations.createCredential)['replies']> {
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
