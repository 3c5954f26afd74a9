import { rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeRoot } from '../../../testing/product-roots.ts'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../testing/products.ts'
import { Fault } from '../../errors/fault.ts'
import type { ApplicationKind } from '../../storage/control/application-clients.ts'
import { closeProduct } from '../product.ts'
import { createClient } from './application-clients.ts'
import { createCredential } from './application-keys.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

function issue(kind: ApplicationKind, product = harness) {
  const { ids } = product.system
  const createdAtMicros = product.system.nowMicros()
  const scope = kind === 'development' ? 'workspace' : 'query'
  const { client } = createClient(product.product, product.actor, {
    clientId: ids.make('app'),
    name: kind,
    kind,
    maximumScopes: [scope],
    createdAtMicros,
    requestId: REQUEST_ID,
  })
  const { credential, key } = createCredential(product.product, product.actor, {
    clientId: client.clientId,
    credentialId: ids.make('crd'),
    name: kind,
    scopes: [scope],
    rateLimit: 50,
    createdAtMicros,
    requestId: REQUEST_ID,
  })
  return { client, credential, key: key!.reveal() }
}

function authenticate(text: string) {
  return harness.product.keys.authenticate(text)
}

function lastUsed(credentialId: string): number | null {
  return harness.root.control.read(
    (reader) =>
      reader.get<{ last_used_at: number | null }>(
        'select last_used_at from application_credentials where credential_id = ?',
        credentialId,
      )!.last_used_at,
  )
}

describe('a key', () => {
  test.each(['public', 'confidential', 'development'] as const)(
    'a key of kind %s authenticates its caller, first from the database and then from memory',
    (kind) => {
      const { client, credential, key } = issue(kind)
      const caller = {
        credentialId: credential.credentialId,
        clientId: client.clientId,
        kind,
        scopes: credential.scopes,
        rateLimit: 50,
      }
      expect(authenticate(key)).toEqual(caller)
      expect(authenticate(key)).toEqual(caller)
    },
  )

  test('a key under the prefix of another kind is rejected', () => {
    const prefixes = [
      'rk_pub_v1_',
      'rk_sec_v1_',
      'rk_dev_v1_',
      'rk_at_v1_',
      'rk_rt_v1_',
      'rk_inv_v1_',
    ]
    for (const kind of ['public', 'confidential', 'development'] as const) {
      const { key } = issue(kind)
      const accepted = prefixes.filter((prefix) => authenticate(prefix + key.slice(10)) !== null)
      expect(accepted).toEqual([key.slice(0, 10)])
    }
  })

  test('a key whose row was moved to a client of another kind is rejected', () => {
    const { credential, key } = issue('public')
    const other = issue('confidential')
    harness.root.control.transaction((tx) =>
      tx.run(
        'update application_credentials set client_id = ? where credential_id = ?',
        other.client.clientId,
        credential.credentialId,
      ),
    )
    expect(authenticate(key)).toBeNull()
  })

  test.each<[string, (key: string) => string]>([
    ['with another last character', (key) => key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A')],
    [
      'with another first character',
      (key) => `rk_pub_v1_${key[10] === 'A' ? 'B' : 'A'}${key.slice(11)}`,
    ],
    ['that is cut', (key) => key.slice(0, -1)],
    ['that is continued', (key) => `${key}A`],
    ['with a line feed', (key) => `${key}\n`],
    ['with white space', (key) => ` ${key}`],
    ['that is repeated', (key) => `${key}, ${key}`],
    ['in upper case', (key) => key.toUpperCase()],
    ['that is empty', () => ''],
    ['that is huge', (key) => key.repeat(10_000)],
  ])('a key %s is rejected', (_, modify) => {
    const { key } = issue('public')
    authenticate(key)
    expect(authenticate(modify(key))).toBeNull()
  })

  test.each(['revoked', 'deleted'])(
    'a key that is %s is rejected from the next call on',
    (state) => {
      const { credential, key } = issue('public')
      expect(authenticate(key)).not.toBeNull()
      harness.root.control.transaction((tx) =>
        tx.run(
          'update application_credentials set state = ?, revoked_at = 1 where credential_id = ?',
          state,
          credential.credentialId,
        ),
      )
      harness.product.keys.forget()
      expect(authenticate(key)).toBeNull()
    },
  )

  test('a key of another Environment is rejected, even under the same keyring', async () => {
    const { key } = issue('public')
    const directory = makeRoot({ descriptor: { environmentId: harness.system.ids.make('env') } })
    const other = await openTestProduct({ directory })
    expect(other.product.keys.authenticate(key)).toBeNull()
    await other.close()
    rmSync(directory, { recursive: true, force: true })
  })

  test('a key authenticates its caller after a restart', async () => {
    const { key } = issue('confidential')
    const { directory } = harness
    await closeProduct(harness.product)
    harness = await openTestProduct({ directory })
    expect(authenticate(key)).not.toBeNull()
  })
})

test.each([
  ['UNAVAILABLE', 'PRODUCT_UNAVAILABLE'],
  ['INTERNAL', 'PRODUCT_CORRUPT'],
] as const)(
  'an unknown key throws %s if its look-up throws %s; a verified key still works',
  (code, cause) => {
    const [verified, unknown] = [issue('public'), issue('public')]
    authenticate(verified.key)
    vi.spyOn(harness.root.control, 'read').mockImplementation(() => {
      throw new Fault(cause)
    })
    expect(() => authenticate(unknown.key)).toThrow(expect.objectContaining({ code }))
    expect(authenticate(verified.key)).not.toBeNull()
  },
)

describe('the time of last use', () => {
  test('a time of use is written after the response, once a minute, and at shutdown', async () => {
    const { credential, key } = issue('public')
    const start = Number(harness.system.nowMicros())
    authenticate(key)
    expect(lastUsed(credential.credentialId)).toBeNull()
    harness.product.keys.close()
    expect(lastUsed(credential.credentialId)).toBe(start)
    harness.system.advance(59_999)
    authenticate(key)
    harness.product.keys.close()
    expect(lastUsed(credential.credentialId)).toBe(start)
    harness.system.advance(1)
    authenticate(key)
    harness.product.keys.close()
    expect(lastUsed(credential.credentialId)).toBe(start + 60_000_000)
  })

  test('a time of use is written without a further call', { tags: ['slow'] }, async () => {
    const { credential, key } = issue('public')
    authenticate(key)
    const { credentialId } = credential
    await expect.poll(() => lastUsed(credentialId)).toBe(Number(harness.system.nowMicros()))
  })

  test('a failure to write a time of use fails no request', () => {
    const { key } = issue('public')
    authenticate(key)
    harness.root.control.transaction((tx) =>
      tx.run(`create trigger reject before update on application_credentials
              begin select raise(abort, 'no'); end`),
    )
    harness.product.keys.close()
    expect(harness.log.text()).toContain('product.last_used_lost')
    expect(authenticate(key)).not.toBeNull()
  })
})
