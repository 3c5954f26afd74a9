/** Application Clients and their credentials. Responses with a key are never cached. */
import {
  ClientCreated,
  ClientList,
  ClientRequest,
  CredentialCreated,
  CredentialList,
  CredentialRequest,
  CredentialRevoked,
  RotateRequest,
} from '../application-clients.ts'
import { environmentOperation } from './operation.ts'

const ISSUED = { 200: CredentialCreated, 201: CredentialCreated } as const

export const listApplicationClients = environmentOperation({
  method: 'GET',
  path: '/application-clients',
  name: 'listApplicationClients',
  summary: 'Lists every Application Client, without keys.',
  capability: 'credentials:read',
  replies: { 200: ClientList },
})

export const createApplicationClient = environmentOperation({
  method: 'POST',
  path: '/application-clients',
  name: 'createApplicationClient',
  summary: 'Creates an Application Client with the ID that the caller chose.',
  capability: 'credentials:manage',
  body: { schema: ClientRequest },
  replay: 'safe',
  replies: { 200: ClientCreated, 201: ClientCreated },
  errors: ['PRODUCT_INVALID', 'PRODUCT_OPERATION_REUSED', 'PRODUCT_STATE_CONFLICT'],
})

export const listCredentials = environmentOperation({
  method: 'GET',
  path: '/application-clients/:clientId/credentials',
  name: 'listCredentials',
  summary: 'Lists every credential of an Application Client, without keys.',
  capability: 'credentials:read',
  replies: { 200: CredentialList },
})

export const createCredential = environmentOperation({
  method: 'POST',
  path: '/application-clients/:clientId/credentials',
  name: 'createCredential',
  summary: 'Creates a credential. Only this response contains its key.',
  capability: 'credentials:manage',
  body: { schema: CredentialRequest },
  // A second secret key would not match the stored digest.
  replay: 'unsafe',
  replies: ISSUED,
  errors: ['PRODUCT_INVALID', 'PRODUCT_OPERATION_REUSED', 'PRODUCT_STATE_CONFLICT'],
  cache: 'no-store, max-age=0',
})

export const rotateCredential = environmentOperation({
  method: 'POST',
  path: '/application-clients/:clientId/credentials/:credentialId/rotate',
  name: 'rotateCredential',
  summary: 'Creates a replacement. The credential stays active until it is revoked.',
  capability: 'credentials:manage',
  body: { schema: RotateRequest },
  // A second secret key would not match the stored digest.
  replay: 'unsafe',
  replies: ISSUED,
  errors: ['PRODUCT_INVALID', 'PRODUCT_OPERATION_REUSED', 'PRODUCT_STATE_CONFLICT'],
  cache: 'no-store, max-age=0',
})

export const revealKey = environmentOperation({
  method: 'POST',
  path: '/application-clients/:clientId/credentials/:credentialId/reveal',
  name: 'revealKey',
  summary: 'Returns the key of a public credential.',
  capability: 'credentials:read',
  replay: 'safe',
  replies: { 200: CredentialCreated },
  errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
  cache: 'no-store, max-age=0',
})

export const revokeCredential = environmentOperation({
  method: 'POST',
  path: '/application-clients/:clientId/credentials/:credentialId/revoke',
  name: 'revokeCredential',
  summary: 'Revokes a credential permanently.',
  capability: 'credentials:manage',
  replay: 'safe',
  replies: { 200: CredentialRevoked },
})

export const deleteCredential = environmentOperation({
  method: 'DELETE',
  path: '/application-clients/:clientId/credentials/:credentialId',
  name: 'deleteCredential',
  summary: 'Deletes a revoked credential and keeps a tombstone.',
  capability: 'credentials:manage',
  replay: 'safe',
  replies: { 204: null },
  errors: ['PRODUCT_STATE_CONFLICT'],
})

export const applicationClientOperations = {
  listApplicationClients,
  createApplicationClient,
  listCredentials,
  createCredential,
  rotateCredential,
  revealKey,
  revokeCredential,
  deleteCredential,
}
