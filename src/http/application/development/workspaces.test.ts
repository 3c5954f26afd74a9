/**
 * Goal: only a development key changes a Workspace, only in an Environment for development, and the
 * change is not served. Method: the application origin over a real Product.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  type Answer,
  CHAT,
  Developers,
  type Sent,
  UNKNOWN_REVISION,
} from '../../../../testing/development/developers.ts'
import { makePackage, OTHER_PROJECT_ID } from '../../../../testing/products.ts'
import { readStatus } from '../../../product/environments/status.ts'
import type { EnvironmentConfiguration } from '../../../storage/control/environment.ts'
import { encodeBase64Url } from '../../../value/base64url.ts'

let t: Developers
beforeAll(async () => {
  t = await Developers.open()
})
afterAll(() => t.close())
afterEach(() => t.reset())

const ROUTES: readonly [string, (sent?: Sent) => Promise<Answer>][] = [
  ['GET', (sent) => t.send('GET', 'chat', sent)],
  ['PUT', (sent) => t.put('empty', CHAT, sent)],
  ['POST', (sent) => t.freeze(UNKNOWN_REVISION, 'chat', sent)],
]

test('each route admits development keys alone', async () => {
  const revoked = t.gateway.issueKey('development')
  t.revokeNewest()
  const callers: readonly [string | null, string][] = [
    [null, '401 APPLICATION_KEY_REQUIRED'],
    [`rk_dev_v1_${'A'.repeat(43)}`, '401 APPLICATION_KEY_INVALID'],
    [`rk_at_v1_${'A'.repeat(43)}`, '401 APPLICATION_KEY_INVALID'],
    [revoked, '401 APPLICATION_KEY_INVALID'],
    [t.gateway.issueKey('public'), '403 TARGET_DENIED'],
    [t.gateway.issueKey('confidential'), '403 TARGET_DENIED'],
  ]
  const before = readStatus(t.gateway.harness.product)
  for (const [caller, outcome] of callers) {
    for (const [method, call] of ROUTES) {
      const answer = await call({ key: caller })
      expect([method, caller, answer.outcome]).toEqual([method, caller, outcome])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
  }
  expect(readStatus(t.gateway.harness.product)).toEqual(before)
})

test('the routes exist only in an Environment for development that allows targets', async () => {
  const cases: readonly [Partial<EnvironmentConfiguration>, boolean][] = [
    [{ purpose: 'development' }, true],
    [{ purpose: 'preview' }, true],
    [{ purpose: 'staging' }, false],
    [{ purpose: 'production' }, false],
    [{ workspaceTargets: 'denied' }, false],
  ]
  for (const [change, exists] of cases) {
    t.setEnvironment(change)
    for (const [, call] of ROUTES) {
      const { outcome } = await call()
      expect([change, outcome === '404 ROUTE_NOT_FOUND']).toEqual([change, !exists])
    }
    // Without a key nothing tells such an Environment from one without these routes.
    const { outcome } = await t.send('GET', 'chat', { key: null })
    expect(outcome).toBe(exists ? '401 APPLICATION_KEY_REQUIRED' : '404 ROUTE_NOT_FOUND')
  }
  t.setEnvironment({}, 'archived')
  for (const [, call] of ROUTES) expect((await call()).outcome).toBe('503 UNAVAILABLE')
})

test('a request that is not exactly of its form is rejected and changes nothing', async () => {
  const before = readStatus(t.gateway.harness.product)
  const { workspace } = t.unused()
  const invalid = '400 REQUEST_INVALID'
  const media = '415 MEDIA_TYPE_UNSUPPORTED'
  const frame = (sent: Sent, head = 'empty') => t.put(head, { ...CHAT, workspace }, sent)
  const text = (body: string, headers = {}) =>
    t.freeze('', workspace, {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  const revisionId = UNKNOWN_REVISION
  const good = JSON.stringify({ version: 1, revisionId })
  const cases: readonly [string, () => Promise<Answer>, string][] = [
    ['name', () => t.send('GET', 'Chat'), invalid],
    ['encoded name', () => t.send('GET', '%43hat'), invalid],
    ['query', () => t.send('GET', `${workspace}?x=1`), invalid],
    ['no head', () => frame({ headers: { 'x-service-expected-head': null } }), invalid],
    ['head', () => frame({}, 'rel_01JZ0000000000000000000000'), invalid],
    ['two heads', () => frame({}, `empty, ${revisionId}`), invalid],
    ['provenance', () => frame({ headers: { 'x-service-provenance': 'e30' } }), invalid],
    ['media type', () => frame({ headers: { 'content-type': 'application/json' } }), media],
    ['compressed', () => frame({ headers: { 'content-encoding': 'gzip' } }), media],
    [
      'length',
      () => frame({ headers: { 'content-length': String(2 ** 26 + 1) } }),
      '413 LIMIT_EXCEEDED',
    ],
    [
      'frame',
      () => frame({ body: makePackage(CHAT).subarray(1) as BodyInit }),
      '400 PRODUCT_INVALID',
    ],
    [
      'Project',
      () => t.put('empty', { ...CHAT, workspace, projectId: OTHER_PROJECT_ID }),
      '400 PRODUCT_INVALID',
    ],
    ['Workspace', () => frame({ body: makePackage(CHAT) as BodyInit }), '400 PRODUCT_INVALID'],
    ['no JSON', () => text('{'), invalid],
    ['unknown field', () => text(good.replace('}', ',"x":1}')), invalid],
    ['duplicate key', () => text(good.replace('{', '{"version":1,')), invalid],
    ['version', () => text(good.replace('1', '2')), invalid],
    ['revision', () => text(JSON.stringify({ version: 1, revisionId: 'empty' })), invalid],
    ['media type of JSON', () => text(good, { 'content-type': 'text/plain' }), media],
    ['long JSON', () => text(good.padEnd(16 * 1024 + 1)), '413 LIMIT_EXCEEDED'],
    [
      'browser origin',
      () => t.send('GET', workspace, { headers: { origin: 'https://x.test' } }),
      '403 ORIGIN_DENIED',
    ],
    ['method', () => t.send('DELETE', workspace), '405 METHOD_NOT_ALLOWED'],
    ['path', () => t.send('POST', `${workspace}/promote`), '404 ROUTE_NOT_FOUND'],
  ]
  for (const [defect, call, outcome] of cases) {
    expect([defect, (await call()).outcome]).toEqual([defect, outcome])
  }
  const { headers } = await t.send('DELETE', workspace)
  expect(headers.get('allow')).toBe('GET, PUT, OPTIONS')
  expect(readStatus(t.gateway.harness.product)).toEqual(before)
})

test('a synchronization moves the HEAD and nothing else, once for each precondition', async () => {
  const before = t.served()
  const content = t.unused()
  const { workspace } = content
  const { projectId, environmentId } = t.gateway.harness.root.descriptor
  const empty = { version: 1, projectId, environmentId, workspace, head: null }
  expect((await t.send('GET', workspace)).body).toEqual(empty)
  const provenance = { branch: 'main', commit: null, dirty: true, message: null, run: null }
  const text = new TextEncoder().encode(JSON.stringify(provenance))
  const headers = { 'x-service-provenance': encodeBase64Url(text) }
  const first = await t.put('empty', content, { headers })
  const { revisionId, releaseId, packageDigest } = first.body
  expect(first.status).toBe(201)
  expect(first.body).toEqual({
    version: 1,
    workspace,
    revisionId,
    releaseId,
    packageDigest,
    replayed: false,
  })
  const head = { revisionId, releaseId, state: 'published', packageDigest }
  expect((await t.send('GET', workspace)).body).toEqual({ ...empty, head })
  const repeated = await t.put('empty', content)
  expect([repeated.status, repeated.body]).toEqual([200, { ...first.body, replayed: true }])
  const other = { ...content, source: 'other' }
  expect((await t.put('empty', other)).outcome).toBe('409 PRODUCT_CAS_CONFLICT')
  const second = await t.put(revisionId, other)
  expect(second.status).toBe(201)
  expect(await t.headOf(workspace)).toMatchObject({ revisionId: second.body.revisionId })
  expect(t.served()).toEqual(before)
  const { releases } = readStatus(t.gateway.harness.product)
  expect(releases.find((each) => each.releaseId === releaseId)?.provenance).toEqual(provenance)
  const { audit } = t.gateway.harness.product
  await audit.whenIdle()
  const recorded = t.gateway.harness.audited.filter(({ subject }) => subject === revisionId)
  expect(recorded).toMatchObject([
    { operation: 'product.workspace.publish', actor: null, sessionId: null },
  ])
  expect(recorded[0]!.credentialId).toMatch(/^crd_/)
})

test('a freeze validates the Release of the HEAD and serves nothing', async () => {
  const before = t.served()
  const { workspace, revisionId, releaseId, content } = await t.synchronized()
  const frozen = await t.freeze(revisionId, workspace)
  expect(frozen.status).toBe(200)
  expect(frozen.body).toMatchObject({ version: 1, releaseId, state: 'validated' })
  expect(frozen.body.checks.map(({ outcome }) => outcome)).not.toContain('failed')
  expect(await t.headOf(workspace)).toMatchObject({ state: 'validated' })
  expect(t.served()).toEqual(before)
  await t.put(revisionId, { ...content, source: 'next' })
  // A repeat has the first result although the HEAD has moved since.
  expect((await t.freeze(revisionId, workspace)).body).toEqual(frozen.body)
  const { product, audited } = t.gateway.harness
  await product.audit.whenIdle()
  const recorded = audited.filter(({ subject }) => subject === releaseId)
  expect(recorded).toMatchObject([{ operation: 'product.release.validate', actor: null }])
  expect(recorded[0]!.credentialId).toMatch(/^crd_/)
})

test('a freeze of what is not the HEAD of the Workspace is rejected', async () => {
  const { workspace, revisionId, content } = await t.synchronized()
  const other = await t.synchronized()
  expect((await t.freeze(other.revisionId, workspace)).outcome).toBe('404 PRODUCT_NOT_FOUND')
  const unknown = UNKNOWN_REVISION
  expect((await t.freeze(unknown, workspace)).outcome).toBe('404 PRODUCT_NOT_FOUND')
  await t.put(revisionId, { ...content, source: 'next' })
  expect((await t.freeze(revisionId, workspace)).outcome).toBe('409 PRODUCT_CAS_CONFLICT')
})

test('a freeze with a failed check says which, and validates nothing', async () => {
  t.describeAs([])
  const { workspace, revisionId, releaseId } = await t.synchronized()
  for (const _ of ['decided', 'repeated']) {
    const { status, body } = await t.freeze(revisionId, workspace)
    expect([status, body.releaseId, body.state]).toEqual([200, releaseId, 'rejected'])
    expect(body.checks).toContainEqual({
      name: 'code:functions',
      outcome: 'failed',
      detail: 'the manifest differs from the code: one.read',
    })
  }
})
