import { afterEach, beforeEach, expect, test } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import { makePackage, publishRelease } from '../../../testing/products.ts'
import { findSubjectProvenance } from '../../product/workspaces/provenance.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import { PackageChecked } from '../../wire/releases.ts'
import { Status } from '../../wire/status.ts'
import { Published } from '../../wire/workspace.ts'

let routes: ProductRoutes
beforeEach(async () => {
  routes = await ProductRoutes.open()
})
afterEach(() => routes.harness.close())

const PROVENANCE = {
  message: 'Größere Räume — für alle 🚀',
  commit: '0123456789abcdef'.repeat(4),
  branch: 'feature/rooms',
  dirty: true,
  run: { provider: 'gitlab', id: '42', url: 'https://gitlab.example/-/pipelines/42' },
}

const encoded = (value: unknown) =>
  encodeBase64Url(
    new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)),
  )
const publish = (declared: unknown) =>
  routes.publish(makePackage(), 'empty', { 'x-service-provenance': encoded(declared) })

test('what a publisher declares is shown with the Release, and found for the audit', async () => {
  const published = await answer(publish(PROVENANCE), 201, Published)
  const status = await answer(routes.call('GET', '/status'), 200, Status)
  expect(status.releases).toMatchObject([{ provenance: PROVENANCE }])
  const { product, actor } = routes.harness
  const { revisionId, releaseId } = published
  for (const subject of [revisionId, releaseId, `production:${releaseId}`]) {
    expect(findSubjectProvenance(product, actor, subject)).toEqual(PROVENANCE)
  }
  for (const subject of ['', 'production', `rel_${'0'.repeat(26)}`, actor.operatorId]) {
    expect(findSubjectProvenance(product, actor, subject)).toBeNull()
  }
  const stranger = { ...actor, grants: [] }
  expect(findSubjectProvenance(product, stranger, releaseId)).toBeNull()
})

test.each<[string, unknown]>([
  ['a newline in the message', { ...PROVENANCE, message: 'one\ntwo' }],
  ['an escape sequence', { ...PROVENANCE, branch: '\u001b[2J' }],
  ['a message that is not in NFC', { ...PROVENANCE, message: 'e\u0301' }],
  ['a message that is too long', { ...PROVENANCE, message: 'x'.repeat(513) }],
  ['no message at all', { ...PROVENANCE, message: '' }],
  ['a lone surrogate', JSON.stringify(PROVENANCE).replace('rooms', '\\ud800')],
  ['a short commit', { ...PROVENANCE, commit: '0123456' }],
  ['an upper-case commit', { ...PROVENANCE, commit: 'A'.repeat(40) }],
  ['a script for a URL', { ...PROVENANCE, run: { ...PROVENANCE.run, url: 'javascript:1' } }],
  ['a blank in the URL', { ...PROVENANCE, run: { ...PROVENANCE.run, url: 'https://x y' } }],
  ['an unknown field', { ...PROVENANCE, author: 'ana' }],
  ['a missing field', { message: 'x' }],
  ['no object', '[]'],
  ['no JSON', '{'],
  ['a duplicate key', '{"message":null,"message":null}'],
])('a provenance with %s is rejected before the package is read', async (_, declared) => {
  await rejection(publish(declared), 400, 'PLATFORM_REQUEST_INVALID')
  expect((await answer(routes.call('GET', '/status'), 200, Status)).releases).toEqual([])
})

test('a header that is no base64url of at most 4,096 bytes is rejected', async () => {
  const long = { ...PROVENANCE, message: 'x'.repeat(5_000) }
  for (const text of ['', '{}', 'e30=', 'e3', encoded(long)]) {
    const headers = { 'x-service-provenance': text }
    const rejected = routes.publish(makePackage(), 'empty', headers)
    await rejection(rejected, 400, 'PLATFORM_REQUEST_INVALID')
  }
})

test('a package is checked without being published', async () => {
  await publishRelease(routes.harness)
  const before = await answer(routes.call('GET', '/status'), 200, Status)
  const body = makePackage({ source: 'next' })
  const checked = await answer(
    routes.call('POST', '/workspace/check', { body }),
    200,
    PackageChecked,
  )
  expect(checked).toMatchObject({ version: 1, workspace: 'default', compatible: true })
  const unbound = routes.call('POST', '/workspace/check?against=production', { body })
  await rejection(unbound, 404, 'PRODUCT_NOT_FOUND')
  const damaged = routes.call('POST', '/workspace/check', { body: body.subarray(1) })
  await rejection(damaged, 400, 'PRODUCT_INVALID')
  expect(await answer(routes.call('GET', '/status'), 200, Status)).toEqual(before)
})
