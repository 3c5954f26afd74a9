import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { answer, ProductRoutes, refusal } from '../../../build/testing/product-routes.ts'
import type { TestProduct } from '../../../build/testing/products.ts'
import {
  ClientCreated,
  ClientList,
  CredentialCreated,
  CredentialList,
} from '../../wire/application-clients.ts'

let routes: ProductRoutes
let it: TestProduct
beforeEach(async () => {
  routes = await ProductRoutes.open()
  it = routes.it
})
afterEach(() => it.close())

function call(...parameters: Parameters<ProductRoutes['call']>) {
  return routes.call(...parameters)
}

describe('Application Clients', () => {
  const micros = () => String(it.system.nowMicros())

  test('and their keys are created, replayed and listed', async () => {
    const client = {
      clientId: it.system.ids.make('app'),
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
    await refusal(addClient({ ...client, name: 'C' }), 409, 'PRODUCT_OPERATION_REUSED')
    const list = await answer(call('GET', '/application-clients'), 200, ClientList)
    expect(list.clients).toEqual([created.client])

    const path = `/application-clients/${client.clientId}/credentials`
    const credential = {
      credentialId: it.system.ids.make('crd'),
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
    expect(it.log.text()).not.toContain(issued.key!.slice(10))
  })

  test('with a scope, kind or time outside of the message are refused', async () => {
    const client = {
      clientId: it.system.ids.make('app'),
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
      { clientId: it.system.ids.make('crd') },
      { owner: true },
    ]) {
      const response = call('POST', '/application-clients', { body: { ...client, ...more } })
      await refusal(response, 400, 'PLATFORM_REQUEST_INVALID')
    }
    const repeated = { ...client, maximumScopes: ['query', 'query'] }
    const response = call('POST', '/application-clients', { body: repeated })
    await refusal(response, 400, 'PRODUCT_INVALID')
  })
})
