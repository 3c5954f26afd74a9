import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../testing/products.ts'
import { findEnvironment, updateEnvironment } from '../../storage/control/environment.ts'
import { type ClientInput, createClient, listClients } from './application-clients.ts'
import { type CredentialInput, createCredential, listCredentials } from './application-keys.ts'

let harness: TestProduct
let client: ClientInput
let credential: CredentialInput

beforeEach(async () => {
  harness = await openTestProduct()
  client = {
    clientId: harness.system.ids.make('app'),
    name: 'Web',
    kind: 'public',
    maximumScopes: ['query', 'mutation'],
    createdAtMicros: harness.system.nowMicros(),
    requestId: REQUEST_ID,
  }
  credential = {
    clientId: client.clientId,
    credentialId: harness.system.ids.make('crd'),
    name: 'First key',
    scopes: ['query'],
    rateLimit: null,
    createdAtMicros: harness.system.nowMicros(),
    requestId: REQUEST_ID,
  }
})
afterEach(() => harness.close())

const DAY = 24n * 3600n * 1_000_000n

function addClient(more: Partial<ClientInput> = {}) {
  return createClient(harness.product, harness.actor, { ...client, ...more })
}
function addCredential(more: Partial<CredentialInput> = {}) {
  return createCredential(harness.product, harness.actor, { ...credential, ...more })
}
function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

describe('an Application Client', () => {
  test('a client is created once, listed, and returned to an exact repeat', async () => {
    const created = addClient()
    expect(created).toEqual({
      client: {
        clientId: client.clientId,
        name: 'Web',
        kind: 'public',
        maximumScopes: ['mutation', 'query'],
        createdAtMicros: client.createdAtMicros,
      },
      replayed: false,
    })
    expect(addClient({ maximumScopes: ['mutation', 'query'] })).toEqual({
      ...created,
      replayed: true,
    })
    expect(listClients(harness.product)).toEqual([created.client])
    await harness.product.audit.whenIdle()
    expect(harness.audited.map(({ operation }) => operation)).toEqual([
      'product.application_client.create',
    ])
  })

  test('a client is returned to a repeat at any later time', () => {
    addClient()
    harness.system.advance(48 * 3600 * 1000)
    expect(addClient().replayed).toBe(true)
  })

  test.each<[string, Partial<ClientInput>]>([
    ['name', { name: 'Mobile' }],
    ['kind', { kind: 'confidential' }],
    ['scopes', { maximumScopes: ['query'] }],
    ['time', { createdAtMicros: 1_800_000_000_000_001n }],
  ])('a client with a used ID and another %s is rejected as reused', (_, more) => {
    addClient()
    expect(codeOf(() => addClient(more))).toBe('PRODUCT_OPERATION_REUSED')
    expect(listClients(harness.product)).toMatchObject([{ name: 'Web', kind: 'public' }])
  })

  test.each<[string, Partial<ClientInput>]>([
    ['an empty name', { name: '' }],
    ['a name of 129 characters', { name: 'x'.repeat(129) }],
    ['a control character in its name', { name: 'a\u0000b' }],
    ['no scope', { maximumScopes: [] }],
    ['one scope twice', { maximumScopes: ['query', 'query'] }],
    [
      'a scope of Functions for the kind development',
      { kind: 'development', maximumScopes: ['query'] },
    ],
    ['a time too long ago', { createdAtMicros: 1_800_000_000_000_000n - DAY - 1n }],
    ['a time too far ahead', { createdAtMicros: 1_800_000_000_000_000n + DAY + 1n }],
    ['a time beyond 64 bits', { createdAtMicros: 2n ** 63n }],
  ])('a client with %s is rejected', (_, more) => {
    expect(codeOf(() => addClient(more))).toBe('PRODUCT_INVALID')
    expect(listClients(harness.product)).toEqual([])
  })
})

test('an Application Client for development cannot be made in production', async () => {
  const development = { kind: 'development', maximumScopes: ['workspace'] } as const
  const made = addClient(development)
  setPurpose('production')
  // The client that exists is still returned to a repeat.
  expect(addClient(development)).toEqual({ ...made, replayed: true })
  const other = { ...development, clientId: harness.system.ids.make('app') }
  expect(codeOf(() => addClient(other))).toBe('PRODUCT_STATE_CONFLICT')
  expect(listClients(harness.product)).toHaveLength(1)
  expect(addClient({ clientId: other.clientId }).replayed).toBe(false)
  setPurpose('staging')
  expect(addClient({ ...other, clientId: harness.system.ids.make('app') }).replayed).toBe(false)
})

function setPurpose(purpose: 'production' | 'staging'): void {
  harness.product.root.control.transaction((tx) => {
    const environment = findEnvironment(tx)!
    const configuration = { ...environment.configuration, purpose }
    updateEnvironment(tx, { ...environment, configuration })
  })
}

describe('a credential', () => {
  test('a credential of a public client has a key that a repeat shows again', async () => {
    addClient()
    const created = addCredential()
    expect(created).toMatchObject({ secretShownOnce: false, replayed: false })
    expect(created.key!.reveal()).toMatch(/^rk_pub_v1_[A-Za-z0-9_-]{43}$/)
    const replayed = addCredential()
    expect(replayed).toEqual({ ...created, replayed: true })
    expect(replayed.key!.reveal()).toBe(created.key!.reveal())
    expect(listCredentials(harness.product, client.clientId)).toEqual([created.credential])
    await harness.product.audit.whenIdle()
    expect(harness.audited.at(-1)).toMatchObject({
      operation: 'product.application_credential.create',
      subject: credential.credentialId,
    })
  })

  test.each([
    ['confidential', 'rk_sec_v1_', 'query'],
    ['development', 'rk_dev_v1_', 'workspace'],
  ] as const)('a credential of a %s client has a key that is shown once', (kind, prefix, scope) => {
    addClient({ kind, maximumScopes: [scope] })
    const created = addCredential({ scopes: [scope] })
    expect(created).toMatchObject({ secretShownOnce: true, replayed: false })
    expect(created.key!.reveal()).toMatch(new RegExp(`^${prefix}[A-Za-z0-9_-]{43}$`))
    expect(addCredential({ scopes: [scope] })).toEqual({
      credential: created.credential,
      key: null,
      secretShownOnce: false,
      replayed: true,
    })
  })

  test.each<[string, Partial<CredentialInput>]>([
    ['name', { name: 'Second key' }],
    ['scopes', { scopes: ['mutation'] }],
    ['rate limit', { rateLimit: 5 }],
    ['time', { createdAtMicros: 1_800_000_000_000_001n }],
  ])('a credential with a used ID and another %s is rejected as reused', (_, more) => {
    addClient()
    addCredential()
    expect(codeOf(() => addCredential(more))).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('a credential with a used ID under another client is rejected as reused', () => {
    addClient()
    addCredential()
    const clientId = harness.system.ids.make('app')
    addClient({ clientId })
    expect(codeOf(() => addCredential({ clientId }))).toBe('PRODUCT_OPERATION_REUSED')
    expect(listCredentials(harness.product, clientId)).toEqual([])
  })

  test.each<[string, Partial<CredentialInput>]>([
    ['a scope that its client lacks', { scopes: ['realtime'] }],
    ['no scope', { scopes: [] }],
    ['a name with a line feed', { name: 'a\nb' }],
    ['a rate limit of zero', { rateLimit: 0 }],
    ['a fractional rate limit', { rateLimit: 1.5 }],
    ['a time too long ago', { createdAtMicros: 1_800_000_000_000_000n - DAY - 1n }],
  ])('a credential with %s is rejected', (_, more) => {
    addClient()
    expect(codeOf(() => addCredential(more))).toBe('PRODUCT_INVALID')
  })

  test('a credential of an unknown client is not found', () => {
    expect(codeOf(() => addCredential())).toBe('PRODUCT_NOT_FOUND')
    expect(codeOf(() => listCredentials(harness.product, client.clientId))).toBe(
      'PRODUCT_NOT_FOUND',
    )
  })

  test('a credential whose digest was altered is reported as corrupt', () => {
    addClient()
    addCredential()
    harness.root.control.transaction((tx) =>
      tx.run('update application_credentials set key_digest = zeroblob(32)'),
    )
    expect(codeOf(() => addCredential())).toBe('PRODUCT_CORRUPT')
  })

  test('a credential leaves no key in the root, in the log or in inspected objects', async () => {
    addClient({ kind: 'confidential' })
    const key = addCredential().key!
    const text = key.reveal().slice('rk_sec_v1_'.length)
    expect(Bun.inspect(addCredential)).not.toContain(text)
    expect(Bun.inspect({ key })).not.toContain(text)
    expect(harness.log.text()).not.toContain(text)
    const files = [...new Bun.Glob('**/*').scanSync({ cwd: harness.directory, onlyFiles: true })]
    // Another reader of lock.db would drop the lock.
    for (const file of files.filter((name) => name !== 'lock.db')) {
      const bytes = Buffer.from(await Bun.file(`${harness.directory}/${file}`).arrayBuffer())
      expect(bytes.includes(text), file).toBe(false)
      expect(bytes.includes(Buffer.from(text, 'base64url')), file).toBe(false)
    }
    expect(files).toContain('control.db-wal')
  })
})
