/** Mounts as operators make, change and remove them, and the secret part of their paths. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import { bindChannel, retireRelease } from '../../../testing/releases.ts'
import { keyringFiles } from '../../storage/keyring-files.ts'
import { TestSystem } from '../../system/system.ts'
import { isPublicUrl, MOUNTS_MAX } from '../../value/http/mounts.ts'
import { rotateKeys } from '../environments/key-rotation.ts'
import { closeProduct } from '../product.ts'
import {
  changeMount,
  type MountConfiguration,
  type PutMount,
  readMounts,
  removeMount,
} from './mounts.ts'

let system: TestSystem
let harness: TestProduct
beforeEach(async () => {
  system = new TestSystem()
  harness = await openTestProduct({ system })
})
afterEach(() => harness.close())

const TARGET = 'channel:production'

function inputOf(name: string, expectedRevision: bigint | null) {
  const changedAtMicros = system.nowMicros()
  const operationId = system.ids.make('opn')
  return { operationId, name, expectedRevision, changedAtMicros, requestId: REQUEST_ID }
}

function put(
  name: string,
  configuration: Partial<MountConfiguration> = {},
  expected: bigint | null = null,
): PutMount {
  const input = { ...inputOf(name, expected), configuration: { target: TARGET, ...configuration } }
  return changeMount(harness.product, harness.actor, input)
}

function remove(name: string, expected: bigint | null = null) {
  return removeMount(harness.product, harness.actor, inputOf(name, expected))
}

const found = (name: string) => harness.product.httpMounts.find(name)
const isToken = (name: string, segment: string) =>
  harness.product.httpMounts.isToken(found(name)!, segment)
const coded = (code: string) => expect.objectContaining({ code })

test('a mount is found from its change on, and no longer after its removal', async () => {
  expect(found('payments')).toBeNull()
  expect(put('payments').result).toMatchObject({
    name: 'payments',
    path: '/v1/http/payments',
    revision: '1',
    configuration: { target: TARGET, rateLimit: null, pathToken: false, publicUrl: null },
  })
  expect(found('payments')?.target).toBe(TARGET)
  put('payments', { target: 'channel:staging' })
  expect(found('payments')?.target).toBe('channel:staging')
  remove('payments')
  expect(found('payments')).toBeNull()
  expect(() => remove('payments')).toThrow(coded('PRODUCT_NOT_FOUND'))
  await harness.product.audit.close()
  const operations = harness.audited.map(({ operation }) => operation)
  expect(operations.filter((each) => each.includes('http_mount'))).toEqual([
    'product.http_mount.put',
    'product.http_mount.put',
    'product.http_mount.delete',
  ])
})

test('mounts are listed by name', () => {
  for (const name of ['b', 'a', 'c']) put(name)
  expect(readMounts(harness.product).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})

test('a list names the Release that each target serves, and null for none', async () => {
  const { releaseId } = await publishRelease(harness)
  const draft = await publishRelease(harness, { source: 'draft', validate: false })
  const retired = await publishRelease(harness, { source: 'retired' })
  retireRelease(harness, retired.releaseId)
  await bindChannel(harness, releaseId, { expectedReleaseId: 'empty' })
  const targets = [
    'channel:production',
    'channel:staging',
    'environment:default',
    `release:${draft.releaseId}`,
    `release:${releaseId}`,
    `release:${retired.releaseId}`,
  ]
  targets.forEach((target, i) => {
    put(`m${i}`, { target })
  })
  const served = readMounts(harness.product).map((each) => each.releaseId)
  expect(served).toEqual([releaseId, null, null, null, releaseId, null])
})

test('parts that a change leaves out stay as they are', () => {
  put('a', { rateLimit: 7, publicUrl: 'https://a.example', pathToken: true })
  const whole = { rateLimit: 7, publicUrl: 'https://a.example', pathToken: true }
  expect(put('a').result.configuration).toEqual({ target: TARGET, ...whole })
  const reset = { rateLimit: null, publicUrl: null, pathToken: false }
  expect(put('a', reset).result.configuration).toEqual({ target: TARGET, ...reset })
})

test('the secret of a path is made once, and stays until it is removed', () => {
  const token = put('a', { pathToken: true }).token!.reveal()
  expect(token).toMatch(/^hkt_[A-Za-z0-9_-]{43}$/)
  expect(isToken('a', token)).toBe(true)
  expect(put('a', { pathToken: true }).token).toBeNull()
  expect(put('a').token).toBeNull()
  expect(isToken('a', token)).toBe(true)
  for (const other of ['', 'hkt_', `${token}A`, token.slice(0, -1), token.toUpperCase()]) {
    expect(isToken('a', other)).toBe(false)
  }
  put('a', { pathToken: false })
  expect(isToken('a', token)).toBe(false)
  const second = put('a', { pathToken: true }).token!.reveal()
  expect(second).not.toBe(token)
  expect([isToken('a', token), isToken('a', second)]).toEqual([false, true])
  // Another mount has another secret.
  put('b', { pathToken: true })
  expect(isToken('b', second)).toBe(false)
})

test('an exact repeat has the first result without the secret', () => {
  const input = { ...inputOf('a', null), configuration: { target: TARGET, pathToken: true } }
  const first = changeMount(harness.product, harness.actor, input)
  const repeat = changeMount(harness.product, harness.actor, input)
  expect(repeat).toMatchObject({ result: first.result, token: null, operation: { replayed: true } })
  expect(isToken('a', first.token!.reveal())).toBe(true)
  const other = { ...input, configuration: { target: TARGET, pathToken: false } }
  expect(() => changeMount(harness.product, harness.actor, other)).toThrow(
    coded('PRODUCT_OPERATION_REUSED'),
  )
})

test('no stored row has the secret', () => {
  const token = put('a', { pathToken: true }).token!.reveal()
  const rows = harness.root.control.read((reader) => [
    ...reader.all('select * from http_mounts'),
    ...reader.all('select * from operations'),
    ...reader.all('select * from audit_outbox'),
  ])
  const texts = rows.flatMap((row) =>
    Object.values(row as object).map((value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value),
    ),
  )
  expect(texts.some((text) => text.includes(token.slice('hkt_'.length)))).toBe(false)
})

test('a change of another revision than the expected one is rejected', () => {
  expect(() => put('a', {}, 1n)).toThrow(coded('PRODUCT_CAS_CONFLICT'))
  put('a', {}, 0n)
  expect(() => put('a', {}, 0n)).toThrow(coded('PRODUCT_CAS_CONFLICT'))
  expect(put('a', {}, 1n).result.revision).toBe('2')
  expect(() => remove('a', 1n)).toThrow(coded('PRODUCT_CAS_CONFLICT'))
  remove('a', 2n)
})

test('a target of another form is rejected', () => {
  for (const target of ['production', 'channel:', 'channel:A', '']) {
    expect(() => put('a', { target })).toThrow(coded('PRODUCT_INVALID'))
  }
})

test(`mount ${MOUNTS_MAX + 1} is rejected, and the others may change`, () => {
  for (let i = 0; i < MOUNTS_MAX; i++) put(`m${i}`)
  expect(() => put('more')).toThrow(coded('PRODUCT_STATE_CONFLICT'))
  put('m0', { rateLimit: 3 })
})

test('the secret of a path is valid after a rotation of the keys and a restart', async () => {
  const token = put('a', { pathToken: true }).token!.reveal()
  const { directory, root, product } = harness
  const files = keyringFiles(directory)
  rotateKeys({ system, root, files })
  await closeProduct(product)
  harness = await openTestProduct({ directory, system })
  expect(isToken('a', token)).toBe(true)
  const rotation = rotateKeys({ system, root: harness.root, files })
  expect(rotation.kept.some(({ uses }) => uses.mounts === 1)).toBe(true)
})

test.each([
  'https://api.example.com',
  'http://localhost:8080',
  'https://example.com/svc',
  'https://xn--bcher-kva.example',
])('a public URL is one that paths can follow: %s', (url) => expect(isPublicUrl(url)).toBe(true))

test.each([
  'https://api.example.com/',
  'https://example.com/svc/',
  'https://example.com?a',
  'https://example.com#a',
  'https://a:b@example.com',
  'https://EXAMPLE.com',
  'ftp://example.com',
  'javascript:alert(1)',
  'example.com',
  '',
  `https://example.com/${'a'.repeat(512)}`,
])('a public URL of another form is rejected: %s', (url) => expect(isPublicUrl(url)).toBe(false))
