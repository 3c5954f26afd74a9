/**
 * The credential lifecycle (contract/application.md, Credential lifecycle): one test for each row,
 * and the guarantees of each.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../testing/products.ts'
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
} from './application-keys.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

const requestId = REQUEST_ID
const KINDS = ['public', 'confidential', 'development'] as const

interface CredentialPath {
  readonly clientId: ClientId
  readonly credentialId: CredentialId
}

function issue(kind: ApplicationKind): CredentialPath & { readonly key: string } {
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

function rotation(source: CredentialPath): RotateInput {
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
const revoke = (name: CredentialPath) =>
  revokeCredential(harness.product, harness.actor, { ...name, requestId })
const remove = (name: CredentialPath) =>
  deleteCredential(harness.product, harness.actor, { ...name, requestId })
const reveal = (name: CredentialPath) =>
  revealKey(harness.product, harness.actor, { ...name, requestId })
const isAccepted = (key: string) => harness.product.keys.authenticate(key) !== null
const stateOf = ({ clientId, credentialId }: CredentialPath) =>
  listCredentials(harness.product, clientId).find(
    (credential) => credential.credentialId === credentialId,
  )?.state

function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

async function audits(): Promise<string[]> {
  await harness.product.audit.whenIdle()
  return harness.audited.map(({ operation }) => operation.replace('product.application_', ''))
}

describe('an active credential', () => {
  test.each(KINDS)(
    'a credential of kind %s stays active when a rotation creates its replacement',
    async (kind) => {
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
      expect([isAccepted(source.key), isAccepted(key!.reveal())]).toEqual([true, true])
      expect(stateOf(source)).toBe('active')
      expect(await audits()).toEqual(['client.create', 'credential.create', 'credential.rotate'])
    },
  )

  test('a replacement has the name, scopes and limit of its rotation', () => {
    const source = issue('confidential')
    const changes = { name: 'second', scopes: ['mutation', 'query'] as const, rateLimit: null }
    expect(rotate({ ...rotation(source), changes }).credential).toMatchObject(changes)
    const beyond = { ...rotation(source), changes: { scopes: ['realtime'] as const } }
    expect(codeOf(() => rotate(beyond))).toBe('PRODUCT_INVALID')
    const unlimited = { ...rotation(source), changes: { rateLimit: 0 } }
    expect(codeOf(() => rotate(unlimited))).toBe('PRODUCT_INVALID')
  })

  test('a credential is rejected from the next request on after its revocation', async () => {
    const source = issue('confidential')
    expect(isAccepted(source.key)).toBe(true)
    harness.system.advance(1_000)
    expect(revoke(source)).toMatchObject({
      state: 'revoked',
      revokedAtMicros: harness.system.nowMicros(),
    })
    expect(isAccepted(source.key)).toBe(false)
    expect((await audits()).at(-1)).toBe('credential.revoke')
  })

  test('an active credential cannot be deleted', () => {
    const source = issue('public')
    expect(codeOf(() => remove(source))).toBe('PRODUCT_STATE_CONFLICT')
    expect(stateOf(source)).toBe('active')
    expect(isAccepted(source.key)).toBe(true)
  })

  test('a credential of kind public reveals the same key again', async () => {
    const source = issue('public')
    const { credential, key } = reveal(source)
    expect(credential.credentialId).toBe(source.credentialId)
    expect(key.reveal()).toBe(source.key)
    expect((await audits()).at(-1)).toBe('credential.reveal')
  })

  test.each(['confidential', 'development'] as const)(
    'a credential of kind %s cannot reveal its key',
    (kind) => {
      expect(codeOf(() => reveal(issue(kind)))).toBe('PRODUCT_INVALID')
    },
  )

  test('a public key that does not match its digest is not revealed', () => {
    const source = issue('public')
    harness.root.control.transaction((tx) =>
      tx.run('update application_credentials set key_digest = zeroblob(32)'),
    )
    expect(codeOf(() => reveal(source))).toBe('PRODUCT_CORRUPT')
  })
})

describe('a revoked credential', () => {
  const revoked = (kind: ApplicationKind = 'public') => {
    const source = issue(kind)
    revoke(source)
    return source
  }

  test('a revoked credential keeps the time of its first revocation', async () => {
    const source = revoked()
    const [before] = listCredentials(harness.product, source.clientId)
    harness.system.advance(1_000)
    expect(revoke(source)).toEqual(before)
    expect((await audits()).filter((operation) => /revoke/.test(operation))).toHaveLength(1)
  })

  test('a revoked credential is deleted once and leaves a tombstone', async () => {
    const source = revoked()
    remove(source)
    expect(stateOf(source)).toBe('deleted')
    remove(source)
    expect((await audits()).filter((operation) => /delete/.test(operation))).toHaveLength(1)
  })

  test('a revoked credential cannot be rotated', () => {
    const source = revoked('confidential')
    expect(codeOf(() => rotate(rotation(source)))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('a revoked credential is never accepted again', () => {
    const source = revoked()
    expect(isAccepted(source.key)).toBe(false)
    const { key } = rotate(rotation({ ...issue('public') }))
    expect([isAccepted(source.key), isAccepted(key!.reveal())]).toEqual([false, true])
    remove(source)
    expect(isAccepted(source.key)).toBe(false)
  })

  test('a repeated creation returns a revoked credential without its key', () => {
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

describe('a deleted credential', () => {
  const deleted = () => {
    const source = issue('public')
    revoke(source)
    remove(source)
    return source
  }

  test.each<[string, (name: CredentialPath) => unknown]>([
    ['be rotated', (name) => rotate(rotation(name))],
    ['reveal its key', reveal],
  ])('a deleted credential cannot %s', (_, act) => {
    const source = deleted()
    expect(codeOf(() => act(source))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('a deleted credential stays deleted when it is revoked', () => {
    const source = deleted()
    expect(revoke(source).state).toBe('deleted')
    expect(stateOf(source)).toBe('deleted')
  })

  test('the ID of a deleted credential cannot be used again', () => {
    const source = deleted()
    const other = issue('public')
    const reuse = { ...rotation(other), replacementId: source.credentialId }
    expect(codeOf(() => rotate(reuse))).toBe('PRODUCT_OPERATION_REUSED')
  })
})

describe('a rotation', () => {
  test.each(KINDS)('a rotation of a %s key returns its first result to an exact repeat', (kind) => {
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
  ])('a rotation with a used ID and another %s is rejected as reused', (_, more) => {
    const source = issue('confidential')
    const input = rotation(source)
    rotate(input)
    expect(codeOf(() => rotate({ ...input, ...more }))).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('the ID of a rotation cannot be used by a creation or a rotation of another source', () => {
    const source = issue('confidential')
    const input = rotation(source)
    const { credential } = rotate(input)
    const { name, scopes, rateLimit, createdAtMicros } = credential
    const creation = { name, scopes, rateLimit, createdAtMicros, requestId }
    const reused = { clientId: source.clientId, credentialId: input.replacementId, ...creation }
    expect(codeOf(() => createCredential(harness.product, harness.actor, reused))).toBe(
      'PRODUCT_OPERATION_REUSED',
    )
    const second = rotation(source)
    rotate(second)
    const swapped = { ...input, credentialId: second.replacementId }
    expect(codeOf(() => rotate(swapped))).toBe('PRODUCT_OPERATION_REUSED')
    const itself = { ...rotation(source), replacementId: source.credentialId }
    expect(codeOf(() => rotate(itself))).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('a rotation with a clock that is a day off is rejected', () => {
    const source = issue('confidential')
    const createdAtMicros = harness.system.nowMicros() + 24n * 3_600_000_000n + 1n
    expect(codeOf(() => rotate({ ...rotation(source), createdAtMicros }))).toBe('PRODUCT_INVALID')
  })
})

test('a credential is found only under its own client', () => {
  const source = issue('public')
  const other = issue('public')
  const crossed = { clientId: other.clientId, credentialId: source.credentialId }
  for (const act of [revoke, remove, reveal, (name: CredentialPath) => rotate(rotation(name))]) {
    expect(codeOf(() => act(crossed))).toBe('PRODUCT_NOT_FOUND')
    const unknown = { ...source, credentialId: harness.system.ids.make('crd') }
    expect(codeOf(() => act(unknown))).toBe('PRODUCT_NOT_FOUND')
  }
  expect(stateOf(source)).toBe('active')
})
