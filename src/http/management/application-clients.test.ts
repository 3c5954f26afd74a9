import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import type { TestProduct } from '../../../testing/products.ts'
import {
  ClientCreated,
  ClientList,
  CredentialCreated,
  CredentialList,
  CredentialRevoked,
} from '../../wire/application-clients.ts'

let routes: ProductRoutes
let fixture: TestProduct
beforeEach(async () => {
  routes = await ProductRoutes.open()
  fixture = routes.harness
})
afterEach(() => fixture.close())

function call(...parameters: Parameters<ProductRoutes['call']>) {
  return routes.call(...parameters)
}

describe('Application Clients', () => {
  const micros = () => String(fixture.system.nowMicros())

  test('clients and their keys are created, replayed and listed', async () => {
    const client = {
      clientId: fixture.system.ids.make('app'),
      name: 'CI',
      kind: 'confidential',
      maximumScopes: ['query', 'mutation'],
      createdAtMicros: micros(),
    }
    const addClient = (body: object) => call('POST', '/application-clients', { body })
    const created = await answer(addClient(client), 201, ClientCreated)
    expect(created.client).toEqual({ ...client, maximumScopes: ['mutation', 'query'] })
    const replayed = await answer(addClient(client), 200, ClientCreated)
    expect(replayed).toEqual({ ...created, replayed: true })
    await rejection(addClient({ ...client, name: 'C' }), 409, 'PRODUCT_OPERATION_REUSED')
    const list = await answer(call('GET', '/application-clients'), 200, ClientList)
    expect(list.clients).toEqual([created.client])

    const path = `/application-clients/${client.clientId}/credentials`
    const credential = {
      credentialId: fixture.system.ids.make('crd'),
      name: 'one',
      scopes: ['query'],
      createdAtMicros: micros(),
    }
    const response = await call('POST', path, { body: credential })
    expect(response.headers.get('cache-control')).toBe('no-store, max-age=0')
    const issued = await answer(Promise.resolve(response), 201, CredentialCreated)
    expect(issued).toMatchObject({ secretShownOnce: true, replayed: false })
    expect(issued.key).toMatch(/^rk_sec_v1_[A-Za-z0-9_-]{43}$/)
    const repeated = await answer(call('POST', path, { body: credential }), 200, CredentialCreated)
    expect(repeated).toEqual({ ...issued, key: null, secretShownOnce: false, replayed: true })
    expect(await answer(call('GET', path), 200, CredentialList)).toEqual({
      version: 1,
      credentials: [
        {
          ...credential,
          clientId: client.clientId,
          state: 'active',
          revokedAtMicros: null,
          lastUsedAtMicros: null,
          rateLimit: null,
          replaces: null,
        },
      ],
    })
    expect(fixture.log.text()).not.toContain(issued.key!.slice(10))
  })

  test('clients with an invalid scope, kind or time are rejected', async () => {
    const client = {
      clientId: fixture.system.ids.make('app'),
      name: 'CI',
      kind: 'public',
      maximumScopes: ['query'],
      createdAtMicros: micros(),
    }
    for (const more of [
      { kind: 'admin' },
      { maximumScopes: ['admin'] },
      { maximumScopes: 'query' },
      { createdAtMicros: Number(micros()) },
      { createdAtMicros: `0${micros()}` },
      { clientId: fixture.system.ids.make('crd') },
      { owner: true },
    ]) {
      const response = call('POST', '/application-clients', { body: { ...client, ...more } })
      await rejection(response, 400, 'PLATFORM_REQUEST_INVALID')
    }
    const repeated = { ...client, maximumScopes: ['query', 'query'] }
    const response = call('POST', '/application-clients', { body: repeated })
    await rejection(response, 400, 'PRODUCT_INVALID')
  })
})

describe('a key', () => {
  const micros = () => String(fixture.system.nowMicros())
  const KEY_CACHE = 'no-store, max-age=0'

  async function issue(kind: 'public' | 'confidential') {
    const clientId = fixture.system.ids.make('app')
    const client = { clientId, name: 'CI', kind, maximumScopes: ['query'] }
    const body = { ...client, createdAtMicros: micros() }
    await answer(call('POST', '/application-clients', { body }), 201, ClientCreated)
    const path = `/application-clients/${clientId}/credentials`
    const credentialId = fixture.system.ids.make('crd')
    const asked = { credentialId, name: 'one', scopes: ['query'], createdAtMicros: micros() }
    const response = call('POST', path, { body: { ...asked, rateLimit: 7 } })
    const { key, credential } = await answer(response, 201, CredentialCreated)
    expect(credential.rateLimit).toBe(7)
    return { path, key: key!, credentialId, at: `${path}/${credentialId}` }
  }

  test('a key is rotated, revoked and deleted, each with its status and no cache', async () => {
    const { path, key, credentialId, at } = await issue('confidential')
    const body = { credentialId: fixture.system.ids.make('crd'), createdAtMicros: micros() }
    const response = await call('POST', `${at}/rotate`, { body })
    expect(response.headers.get('cache-control')).toBe(KEY_CACHE)
    const rotated = await answer(Promise.resolve(response), 201, CredentialCreated)
    expect(rotated).toMatchObject({
      credential: { replaces: credentialId, rateLimit: 7, state: 'active' },
      secretShownOnce: true,
      replayed: false,
    })
    expect(await answer(call('POST', `${at}/rotate`, { body }), 200, CredentialCreated)).toEqual({
      ...rotated,
      key: null,
      secretShownOnce: false,
      replayed: true,
    })
    const other = { ...body, name: 'other' }
    await rejection(call('POST', `${at}/rotate`, { body: other }), 409, 'PRODUCT_OPERATION_REUSED')
    await rejection(call('DELETE', at), 409, 'PRODUCT_STATE_CONFLICT')
    expect(fixture.product.keys.authenticate(key)).not.toBeNull()
    const revoked = await answer(call('POST', `${at}/revoke`), 200, CredentialRevoked)
    expect(revoked.credential).toMatchObject({ credentialId, state: 'revoked' })
    expect(fixture.product.keys.authenticate(key)).toBeNull()
    expect(
      await answer(call('POST', `${at}/revoke`, { body: {} }), 200, CredentialRevoked),
    ).toEqual(revoked)
    for (let i = 0; i < 2; i++) expect((await call('DELETE', at)).status).toBe(204)
    const { credentials } = await answer(call('GET', path), 200, CredentialList)
    expect(credentials.map(({ state }) => state)).toEqual(['deleted', 'active'])
    expect(fixture.log.text()).not.toContain(rotated.key!.slice(10))
  })

  test('credentials:read reveals the key of a public client, and never any other', async () => {
    const { at, key } = await issue('public')
    const secret = await issue('confidential')
    routes.capabilities = ['credentials:read']
    const response = await call('POST', `${at}/reveal`)
    expect(response.headers.get('cache-control')).toBe(KEY_CACHE)
    expect(await answer(Promise.resolve(response), 200, CredentialCreated)).toMatchObject({
      key,
      secretShownOnce: false,
      replayed: false,
    })
    await rejection(call('POST', `${secret.at}/reveal`), 400, 'PRODUCT_INVALID')
    expect(fixture.log.text()).not.toContain(key.slice(10))
  })

  test("a key that is unknown, or another client's, is not found", async () => {
    const { at, path } = await issue('public')
    const crossed = at.replace(/app_\w+/, (await issue('public')).at.match(/app_\w+/)![0])
    for (const where of [crossed, `${path}/${fixture.system.ids.make('crd')}`]) {
      await rejection(call('POST', `${where}/reveal`), 404, 'PRODUCT_NOT_FOUND')
      await rejection(call('POST', `${where}/revoke`), 404, 'PRODUCT_NOT_FOUND')
      await rejection(call('DELETE', where), 404, 'PRODUCT_NOT_FOUND')
    }
    await rejection(call('POST', `${path}/crd_x/revoke`), 400, 'PLATFORM_REQUEST_INVALID')
  })
})
