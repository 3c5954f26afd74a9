/** The credential lifecycle of Document 2, a row a test, and what each row promises beside it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../build/testing/products.ts'
import type { ApplicationKind } from '../../storage/control/application-clients.ts'
import type { ClientId, CredentialId } from '../../value/ids.ts'
import { createClient } from './application-clients.ts'
import {
  createCredential,
  deleteCredential,
  KEY_PREFIXES,
  listCredentials,
  type RotateInput,
  revealKey,
  revokeCredential,
  rotateCredential,
} from './application-credentials.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

const requestId = REQUEST_ID
const KINDS = ['public', 'confidential', 'development'] as const

interface Name {
  readonly clientId: ClientId
  readonly credentialId: CredentialId
}

function issue(kind: ApplicationKind): Name & { readonly key: string } {
  const { ids } = harness.system
  const createdAtMicros = harness.system.nowMicros()
  const scopes = kind === 'development' ? ['workspace' as const] : ['query' as const]
  const { clientId } = createClient(harness.product, harness.actor, {
    clientId: ids.make('app'),
    name: kind,
    kind,
    maximumScopes: kind === 'development' ? scopes : ['query', 'mutation'],
    createdAtMicros,
    requestId,
  }).client
  const { credential, key } = createCredential(harness.product, harness.actor, {
    clientId,
    credentialId: ids.make('crd'),
    name: 'first',
    scopes,
    rateLimit: 50,
    createdAtMicros,
    requestId,
  })
  return { clientId, credentialId: credential.credentialId, key: key!.reveal() }
}

function rotation(source: Name): RotateInput {
  const { clientId, credentialId } = source
  return {
    clientId,
    credentialId,
    replacementId: harness.system.ids.make('crd'),
    changes: {},
    createdAtMicros: harness.system.nowMicros(),
    requestId,
  }
}

const rotate = (input: RotateInput) => rotateCredential(harness.product, harness.actor, input)
const revoke = (name: Name) =>
  revokeCredential(harness.product, harness.actor, { ...name, requestId })
const remove = (name: Name) =>
  deleteCredential(harness.product, harness.actor, { ...name, requestId })
const reveal = (name: Name) => revealKey(harness.product, harness.actor, { ...name, requestId })
const calls = (key: string) => harness.product.keys.authenticate(key) !== null
const stateOf = ({ clientId, credentialId }: Name) =>
  listCredentials(harness.product, clientId).find((each) => each.credentialId === credentialId)
    ?.state

function fault(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

async function audits(): Promise<string[]> {
  await harness.product.audit.whenIdle()
  return harness.audited.map(({ operation }) => operation.replace('product.application_', ''))
}

describe('active', () => {
  test.each(KINDS)('rotate (%s) | a replacement; the source stays and is active', async (kind) => {
    const source = issue(kind)
    harness.system.advance(1_000)
    const input = rotation(source)
    const { credential, key, secretShownOnce, replayed } = rotate(input)
    expect(credential).toEqual({
      credentialId: input.replacementId,
      clientId: source.clientId,
      name: 'first',
      scopes: kind === 'development' ? ['workspace'] : ['query'],
      state: 'active',
      rateLimit: 50,
      createdAtMicros: input.createdAtMicros,
      revokedAtMicros: null,
      lastUsedAtMicros: null,
      replaces: source.credentialId,
    })
    expect({ secretShownOnce, replayed }).toEqual({
      secretShownOnce: kind !== 'public',
      replayed: false,
    })
    expect(key!.reveal()).toMatch(new RegExp(`^${KEY_PREFIXES[kind]}[A-Za-z0-9_-]{43}$`))
    expect(key!.reveal()).not.toBe(source.key)
    expect([calls(source.key), calls(key!.reveal())]).toEqual([true, true])
    expect(stateOf(source)).toBe('active')
    expect(await audits()).toEqual(['client.create', 'credential.create', 'credential.rotate'])
  })

  test('rotate with another name, scopes or limit | the replacement has them', () => {
    const source = issue('confidential')
    const changes = { name: 'second', scopes: ['mutation', 'query'] as const, rateLimit: null }
    expect(rotate({ ...rotation(source), changes }).credential).toMatchObject(changes)
    const beyond = { ...rotation(source), changes: { scopes: ['realtime'] as const } }
    expect(fault(() => rotate(beyond))).toBe('PRODUCT_INVALID')
    const unlimited = { ...rotation(source), changes: { rateLimit: 0 } }
    expect(fault(() => rotate(unlimited))).toBe('PRODUCT_INVALID')
  })

  test('revoke | revoked, in force on the next request', async () => {
    const source = issue('confidential')
    expect(calls(source.key)).toBe(true)
    harness.system.advance(1_000)
    expect(revoke(source)).toMatchObject({
      state: 'revoked',
      revokedAtMicros: harness.system.nowMicros(),
    })
    expect(calls(source.key)).toBe(false)
    expect((await audits()).at(-1)).toBe('credential.revoke')
  })

  test('delete | rejected', () => {
    const source = issue('public')
    expect(fault(() => remove(source))).toBe('PRODUCT_STATE_CONFLICT')
    expect(stateOf(source)).toBe('active')
    expect(calls(source.key)).toBe(true)
  })

  test('reveal of a public key | the same key', async () => {
    const source = issue('public')
    const { credential, key } = reveal(source)
    expect(credential.credentialId).toBe(source.credentialId)
    expect(key.reveal()).toBe(source.key)
    expect((await audits()).at(-1)).toBe('credential.reveal')
  })

  test.each(['confidential', 'development'] as const)('reveal of a %s key | refused', (kind) => {
    expect(fault(() => reveal(issue(kind)))).toBe('PRODUCT_INVALID')
  })

  test('reveal of a public key that does not fit its digest | corrupt', () => {
    const source = issue('public')
    harness.root.control.transaction((tx) =>
      tx.run('update application_credentials set key_digest = zeroblob(32)'),
    )
    expect(fault(() => reveal(source))).toBe('PRODUCT_CORRUPT')
  })
})

describe('revoked', () => {
  const revoked = (kind: ApplicationKind = 'public') => {
    const source = issue(kind)
    revoke(source)
    return source
  }

  test('revoke | stays revoked, at its first time', async () => {
    const source = revoked()
    const [before] = listCredentials(harness.product, source.clientId)
    harness.system.advance(1_000)
    expect(revoke(source)).toEqual(before)
    expect((await audits()).filter((operation) => /revoke/.test(operation))).toHaveLength(1)
  })

  test('delete | tombstoned, once', async () => {
    const source = revoked()
    remove(source)
    expect(stateOf(source)).toBe('deleted')
    remove(source)
    expect((await audits()).filter((operation) => /delete/.test(operation))).toHaveLength(1)
  })

  test('rotate | rejected', () => {
    const source = revoked('confidential')
    expect(fault(() => rotate(rotation(source)))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('nothing makes it call again', () => {
    const source = revoked()
    expect(calls(source.key)).toBe(false)
    const { key } = rotate(rotation({ ...issue('public') }))
    expect([calls(source.key), calls(key!.reveal())]).toEqual([false, true])
    remove(source)
    expect(calls(source.key)).toBe(false)
  })

  test('an exact replay of its creation | the credential without its key', () => {
    const source = issue('public')
    const [{ name, scopes, rateLimit, createdAtMicros }] = listCredentials(
      harness.product,
      source.clientId,
    ) as [ReturnType<typeof listCredentials>[number]]
    revoke(source)
    const again = { ...source, name, scopes, rateLimit, createdAtMicros, requestId }
    expect(createCredential(harness.product, harness.actor, again)).toMatchObject({
      key: null,
      replayed: true,
      credential: { state: 'revoked' },
    })
  })
})

describe('deleted', () => {
  const deleted = () => {
    const source = issue('public')
    revoke(source)
    remove(source)
    return source
  }

  test.each<[string, (name: Name) => unknown]>([
    ['rotate', (name) => rotate(rotation(name))],
    ['reveal', reveal],
  ])('%s | rejected', (_, act) => {
    const source = deleted()
    expect(fault(() => act(source))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('revoke | stays deleted', () => {
    const source = deleted()
    expect(revoke(source).state).toBe('deleted')
    expect(stateOf(source)).toBe('deleted')
  })

  test('its ID is never another credential', () => {
    const source = deleted()
    const other = issue('public')
    const reuse = { ...rotation(other), replacementId: source.credentialId }
    expect(fault(() => rotate(reuse))).toBe('PRODUCT_OPERATION_REUSED')
  })
})

describe('a rotation', () => {
  test.each(KINDS)('of a %s key that is repeated exactly answers the first result', (kind) => {
    const source = issue(kind)
    const input = rotation(source)
    const first = rotate(input)
    revoke(source)
    harness.system.advance(48 * 3_600_000)
    const again = rotate(input)
    expect(again).toMatchObject({
      credential: first.credential,
      secretShownOnce: false,
      replayed: true,
    })
    expect(again.key?.reveal() ?? null).toBe(kind === 'public' ? first.key!.reveal() : null)
    expect(listCredentials(harness.product, source.clientId)).toHaveLength(2)
  })

  test.each<[string, Partial<RotateInput>]>([
    ['time', { createdAtMicros: 1_800_000_000_000_001n }],
    ['name', { changes: { name: 'other' } }],
    ['scopes', { changes: { scopes: ['mutation'] } }],
    ['limit', { changes: { rateLimit: 51 } }],
  ])('with the same ID and another %s is a reuse', (_, more) => {
    const source = issue('confidential')
    const input = rotation(source)
    rotate(input)
    expect(fault(() => rotate({ ...input, ...more }))).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('and a creation never stand for each other, nor do two sources', () => {
    const source = issue('confidential')
    const input = rotation(source)
    const { credential } = rotate(input)
    const { name, scopes, rateLimit, createdAtMicros } = credential
    const creation = { name, scopes, rateLimit, createdAtMicros, requestId }
    const reused = { clientId: source.clientId, credentialId: input.replacementId, ...creation }
    expect(fault(() => createCredential(harness.product, harness.actor, reused))).toBe(
      'PRODUCT_OPERATION_REUSED',
    )
    const second = rotation(source)
    rotate(second)
    const swapped = { ...input, credentialId: second.replacementId }
    expect(fault(() => rotate(swapped))).toBe('PRODUCT_OPERATION_REUSED')
    const itself = { ...rotation(source), replacementId: source.credentialId }
    expect(fault(() => rotate(itself))).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('with a clock that is a day off is invalid', () => {
    const source = issue('confidential')
    const createdAtMicros = harness.system.nowMicros() + 24n * 3_600_000_000n + 1n
    expect(fault(() => rotate({ ...rotation(source), createdAtMicros }))).toBe('PRODUCT_INVALID')
  })
})

test('a credential is found under its own client only', () => {
  const source = issue('public')
  const other = issue('public')
  const crossed = { clientId: other.clientId, credentialId: source.credentialId }
  for (const act of [revoke, remove, reveal, (name: Name) => rotate(rotation(name))]) {
    expect(fault(() => act(crossed))).toBe('PRODUCT_NOT_FOUND')
    const unknown = { ...source, credentialId: harness.system.ids.make('crd') }
    expect(fault(() => act(unknown))).toBe('PRODUCT_NOT_FOUND')
  }
  expect(stateOf(source)).toBe('active')
})
