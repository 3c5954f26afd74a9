import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { makeRoot } from '../../../testing/product-roots.ts'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../testing/products.ts'
import { keyringFiles } from '../../storage/keyring-files.ts'
import { realSystem, TestSystem } from '../../system/system.ts'
import { DOWNLOAD_SECONDS } from '../../value/files/grant-lifetimes.ts'
import { formatKeyring, KEYS_MAX } from '../../value/product-root.ts'
import { createClient } from '../application-clients/application-clients.ts'
import { createCredential, KEY_PREFIXES } from '../application-clients/application-keys.ts'
import {
  deleteConfiguration,
  readConfiguration,
  setConfiguration,
} from '../configuration/configuration.ts'
import {
  openDownload,
  openSignedDownload,
  sealDownload,
  sealSignedDownload,
} from '../files/download-tokens.ts'
import { FunctionalTokens } from '../functional-tokens/tokens.ts'
import { closeProduct } from '../product.ts'
import { type KeyRotation, rotateKeys } from './key-rotation.ts'

const DYING_ROTATION = join(import.meta.dirname, '../../..', 'testing/dying/rotation.ts')
const DAY_MS = 86_400_000
const SECRETS = { API_KEY: 'sk_live_51H8xJ2eZvKYlo2C', OTHER: 'second secret', THIRD: 'third' }

let system = new TestSystem()
let directory: string
let harness: TestProduct
afterEach(() => harness.close())

async function open(path = makeRoot()): Promise<TestProduct> {
  directory = path
  harness = await openTestProduct({ directory, system })
  return harness
}

/** Rotates the keys, closes the Product and opens its root again. */
async function rotate(): Promise<KeyRotation> {
  const files = keyringFiles(directory)
  const rotation = rotateKeys({ system, root: harness.root, files })
  await closeProduct(harness.product)
  await open(directory)
  return rotation
}

function set(name: string, value: string, kind: 'variable' | 'secret' = 'secret') {
  return setConfiguration(harness.product, harness.actor, {
    operationId: harness.system.ids.make('opn'),
    name,
    kind,
    value,
    expectedRevision: readConfiguration(harness.product).revision,
    changedAtMicros: harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })
}

function setAll(): void {
  for (const [name, value] of Object.entries(SECRETS)) set(name, value)
}

function secrets(): Record<string, string | undefined> {
  const { current } = harness.product.configuration
  return Object.fromEntries(
    Object.keys(SECRETS).map((name) => [name, current.secret(name)?.reveal()]),
  )
}

function keyIdsOf(table: 'configuration' | 'application_credentials' | 'operations'): string[] {
  return harness.root.control.read((reader) =>
    reader
      .all<{ key_id: string }>(`select distinct key_id from ${table} where key_id is not null`)
      .map((row) => row.key_id),
  )
}

const keyringIds = () =>
  keyringFiles(directory)
    .read()
    .keys.map(({ id }) => id)

describe('after a rotation', () => {
  test('a rotation seals every secret under the new key and changes nothing else', async () => {
    await open()
    setAll()
    set('GREETING', 'hello', 'variable')
    const before = readConfiguration(harness.product)
    const sealedBefore = JSON.stringify(
      before.entries.map(({ content }) => content),
      bytesAsHex,
    )
    const rotation = await rotate()
    expect(rotation).toMatchObject({ resealed: 3, removedIds: [] })
    expect(keyIdsOf('configuration')).toEqual([rotation.activeId])
    expect(keyringIds()).toEqual(['k1', rotation.activeId])
    expect(harness.root.keyring.activeId).toBe(rotation.activeId)
    expect(secrets()).toEqual(SECRETS)
    const after = readConfiguration(harness.product)
    expect(after.revision).toBe(before.revision)
    const withoutContent = ({ entries }: typeof after) =>
      entries.map(({ content, ...entry }) => ({ ...entry, kind: content.kind }))
    expect(withoutContent(after)).toEqual(withoutContent(before))
    const sealedAfter = JSON.stringify(
      after.entries.map(({ content }) => content),
      bytesAsHex,
    )
    expect(sealedAfter).not.toBe(sealedBefore)
  })

  test.each(['public', 'confidential', 'development'] as const)(
    'an Application Key of a %s client still authenticates its caller after a rotation',
    async (kind) => {
      await open()
      const scope = kind === 'development' ? 'workspace' : 'query'
      const clientId = harness.system.ids.make('app')
      const createdAtMicros = harness.system.nowMicros()
      const common = { createdAtMicros, requestId: REQUEST_ID, name: 'one' }
      createClient(harness.product, harness.actor, {
        ...common,
        clientId,
        kind,
        maximumScopes: [scope],
      })
      const credentialId = harness.system.ids.make('crd')
      const input = { ...common, clientId, credentialId, scopes: [scope], rateLimit: null } as const
      const key = createCredential(harness.product, harness.actor, input).key!.reveal()
      const rotations = [await rotate(), await rotate()]
      expect(harness.product.keys.authenticate(key)).toMatchObject({ credentialId, kind })
      // A public key is shown again, character by character.
      const shown = createCredential(harness.product, harness.actor, input).key?.reveal()
      expect(shown).toBe(kind === 'public' ? key : undefined)
      expect(rotations[1]!.kept).toContainEqual({
        keyId: 'k1',
        uses: { credentials: 1, secrets: 0, operations: 0, storageKeys: 0, mounts: 0 },
      })
      // A new public key is derived from the new key.
      const another = { ...input, credentialId: harness.system.ids.make('crd') }
      const newKey = createCredential(harness.product, harness.actor, another).key!.reveal()
      expect(newKey.startsWith(KEY_PREFIXES[kind])).toBe(true)
      expect(keyIdsOf('application_credentials').toSorted()).toEqual(
        ['k1', rotations[1]!.activeId].toSorted(),
      )
      expect(harness.product.keys.authenticate(newKey)).not.toBeNull()
    },
  )

  test('a rotation is in the audit trail, without an actor, at the next opening', async () => {
    const { environmentId } = (await open()).root.descriptor
    await rotate()
    await harness.product.audit.whenIdle()
    expect(harness.audited).toEqual([
      expect.objectContaining({
        operation: 'product.keyring.rotate',
        outcome: 'succeeded',
        subject: environmentId,
        actor: null,
        requestId: null,
        sessionId: null,
      }),
    ])
  })

  test('an exact repeat of an earlier change returns its result after a rotation', async () => {
    await open()
    const input = {
      operationId: harness.system.ids.make('opn'),
      name: 'API_KEY',
      kind: 'secret',
      value: SECRETS.API_KEY,
      expectedRevision: 0n,
      changedAtMicros: harness.system.nowMicros(),
      requestId: REQUEST_ID,
    } as const
    const { actor } = harness
    setConfiguration(harness.product, actor, input)
    await rotate()
    expect(setConfiguration(harness.product, actor, input).operation.replayed).toBe(true)
    const other = { ...input, value: 'other' }
    expect(() => setConfiguration(harness.product, actor, other)).toThrow(
      expect.objectContaining({ code: 'PRODUCT_OPERATION_REUSED' }),
    )
  })

  test('a guest token that was issued before a rotation stays valid', async () => {
    await open()
    const tokens = () =>
      new FunctionalTokens({
        providers: new Map(),
        keyring: harness.root.keyring,
        environmentId: harness.root.descriptor.environmentId,
        system,
      })
    const entropy = new Uint8Array(10).fill(3)
    const nowMicros = system.nowMicros()
    const bearer = tokens().issueGuest({ entropy, nowMicros, expiresInSeconds: 86_400 })
    await rotate()
    system.advance(DAY_MS - 1_000)
    await rotate()
    expect(await tokens().verify(bearer)).toMatchObject({ kind: 'guest' })
  })

  test('a download that was granted before a rotation stays granted until it expires', async () => {
    await open()
    const fileId = `fil_${system.ids.ulid()}`
    const expiresAtMillis = system.nowMillis() + DOWNLOAD_SECONDS.max * 1_000
    const claims = { fileId, expiresAtMillis, fileName: null, inline: true }
    const { keyring } = harness.root
    const [bearer, signed] = [sealDownload(keyring, claims), sealSignedDownload(keyring, claims)]
    await rotate()
    system.advance(DOWNLOAD_SECONDS.max * 1_000 - 1)
    await rotate()
    const nowMillis = system.nowMillis()
    const { keyring: rotated } = harness.root
    expect(rotated.activeId).not.toBe(keyring.activeId)
    expect(openDownload(rotated, bearer, { fileId, nowMillis })).toMatchObject({ fileId })
    expect(openSignedDownload(rotated, signed, nowMillis)).toEqual(claims)
  })
})

describe('an older key', () => {
  test('an older key is removed only once nothing uses it', async () => {
    system = new TestSystem()
    await open()
    setAll()
    const first = await rotate()
    system.advance(2 * DAY_MS)
    const second = await rotate()
    // Idempotency records are kept for 30 days, each with the key of its fingerprint.
    const uses = { credentials: 0, secrets: 0, operations: 3, storageKeys: 0, mounts: 0 }
    expect(second.removedIds).toEqual([])
    expect(second.kept).toEqual([
      { keyId: 'k1', uses },
      { keyId: first.activeId, uses: { ...uses, operations: 0 } },
    ])
    system.advance(2 * DAY_MS)
    const third = await rotate()
    expect(third.removedIds).toEqual([first.activeId])
    system.advance(27 * DAY_MS)
    const fourth = await rotate()
    expect(fourth.removedIds).toEqual(['k1', second.activeId])
    expect(keyringIds()).toEqual([third.activeId, fourth.activeId])
    expect(secrets()).toEqual(SECRETS)
    const unset = {
      operationId: harness.system.ids.make('opn'),
      name: 'API_KEY',
      expectedRevision: readConfiguration(harness.product).revision,
      changedAtMicros: harness.system.nowMicros(),
      requestId: REQUEST_ID,
    }
    deleteConfiguration(harness.product, harness.actor, unset)
    expect(secrets().API_KEY).toBeUndefined()
  })

  test('an older key stays for a day, because guest tokens may use it', async () => {
    system = new TestSystem()
    await open()
    await rotate()
    system.advance(DAY_MS)
    expect((await rotate()).removedIds).toEqual([])
    system.advance(1)
    expect((await rotate()).removedIds).toEqual(['k1'])
  })

  test('a key in use is never removed to make room for a new one', async () => {
    await open()
    const files = keyringFiles(directory)
    const { keys, active } = files.read()
    const extra = Array.from({ length: KEYS_MAX - 1 }, (_, i) => ({
      id: `x${i}`,
      key: new Uint8Array(32).fill(i),
      createdAtMicros: system.nowMicros(),
    }))
    files.write({ version: 1, keys: [...keys, ...extra], active })
    expect(() => rotateKeys({ system, root: harness.root, files })).toThrow(
      expect.objectContaining({ code: 'PRODUCT_STATE_CONFLICT' }),
    )
    expect(files.read().keys).toHaveLength(KEYS_MAX)
  })
})

test('temporary files of an interrupted write are removed by the next rotation', async () => {
  await open()
  const stray = join(directory, '.keyring.json.0123456789ab.tmp')
  writeFileSync(stray, formatKeyring(keyringFiles(directory).read()), { mode: 0o600 })
  await rotate()
  expect(readdirSync(directory).filter((name) => name.endsWith('.tmp'))).toEqual([])
})

/*
 * Goal: a root opens complete, no matter at which step a rotation was killed. Method: a process
 * rotates and kills itself before its nth step, for n = 0, 1, ... until one finishes; after each
 * process the same root is opened, read and written, then rotated again by the next one.
 */
/** Every third step in the short run. */
const STRIDE = process.env.SVC_TEST_LONG === '1' ? 1 : 3

test('a rotation that is killed at any step loses nothing and can be repeated', {
  tags: ['slow'],
}, async () => {
  system = new TestSystem({ millis: realSystem().nowMillis() })
  await open()
  setAll()
  const clientId = harness.system.ids.make('app')
  const common = { createdAtMicros: system.nowMicros(), requestId: REQUEST_ID, name: 'one' }
  const scopes = ['query'] as const
  const { actor } = harness
  createClient(harness.product, actor, {
    ...common,
    clientId,
    kind: 'public',
    maximumScopes: scopes,
  })
  const credentialId = harness.system.ids.make('crd')
  const input = { ...common, clientId, credentialId, scopes, rateLimit: null }
  const key = createCredential(harness.product, actor, input).key!.reveal()
  let steps = 0
  for (let finished = false; !finished; steps += STRIDE) {
    await closeProduct(harness.product)
    const child = Bun.spawnSync([process.execPath, DYING_ROTATION, directory, String(steps)], {
      env: {},
    })
    finished = child.stdout.toString() === 'rotated\n'
    if (!finished)
      expect([steps, child.signalCode, child.stderr.toString()]).toEqual([steps, 'SIGKILL', ''])
    await open(directory)
    expect(secrets(), `killed before step ${steps}`).toEqual(SECRETS)
    expect(harness.product.keys.authenticate(key)).toMatchObject({ credentialId })
    set('AFTER', String(steps))
    expect(harness.product.configuration.current.secret('AFTER')?.reveal()).toBe(String(steps))
  }
  expect(steps).toBeGreaterThan(12)
  expect(keyIdsOf('configuration')).toContain(harness.root.keyring.activeId)
  expect(createCredential(harness.product, actor, input).key?.reveal()).toBe(key)
  expect(readFileSync(join(directory, 'control.db')).includes(SECRETS.API_KEY)).toBe(false)
})

function bytesAsHex(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value
}
