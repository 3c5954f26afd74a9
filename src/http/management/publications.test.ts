/**
 * Goal: a publication moves the HEAD only if its operator may publish at that moment. Method: the
 * route over a real identity and a real Product, where the authorization changes while the body is
 * sent.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresProxy } from '../../../testing/databases/postgres-proxy.ts'
import { type TestIdentity, testIdentity } from '../../../testing/identity.ts'
import { type TestManagement, testManagement } from '../../../testing/openapi/checked-origins.ts'
import { authenticateLogin, firstOwner, operatorWith } from '../../../testing/operators.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from '../../../testing/product-roots.ts'
import { makePackage, openTestProduct, type TestProduct } from '../../../testing/products.ts'
import type { Identity } from '../../identity/identity.ts'
import { type Login, refresh, revokeSession } from '../../identity/sessions.ts'
import { readStatus } from '../../product/environments/status.ts'
import { PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { environmentScope } from '../../value/scope.ts'
import type { ProductApp } from './product-app.ts'
import { workspaceRoutes } from './publish.ts'

const PATH = `/v1/projects/${PROJECT_ID}/environments/${ENVIRONMENT_ID}/workspace/publish`
const SCOPE = environmentScope(PROJECT_ID, ENVIRONMENT_ID)

let t: TestIdentity
let fixture: TestProduct
let hono: TestManagement
let owner: Login
let publisher: Login

beforeEach(async () => {
  t = await testIdentity()
  fixture = await openTestProduct()
  owner = await firstOwner(t)
  publisher = await operatorWith(t, { scope: SCOPE, capabilities: ['releases:publish'] })
  hono = originOf(t.identity)
})

function originOf(sessions: Identity): TestManagement {
  return testManagement<ProductApp>({
    app: { product: fixture.product, environment: fixture.root.descriptor, sessions },
    system: t.system,
    log: t.log.log,
    routes: workspaceRoutes,
  })
}

afterEach(async () => {
  await fixture.close()
  await t.dispose()
})

/** Sends the first half of a package, waits for `meanwhile`, then sends the rest. */
async function publishDuring(meanwhile: () => Promise<unknown>): Promise<[number, string]> {
  const frame = makePackage({ source: 'published' })
  const half = frame.length / 2
  let isTaken = false
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!isTaken) {
          isTaken = true
          controller.enqueue(frame.subarray(0, half))
          return
        }
        await meanwhile()
        controller.enqueue(frame.subarray(half))
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  const response = await hono.request(PATH, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${publisher.accessToken.reveal()}`,
      'content-type': PACKAGE_MEDIA_TYPE,
      'x-service-expected-head': 'empty',
    },
    body,
  })
  const answer = (await response.json()) as { readonly error?: { readonly code: string } }
  return [response.status, answer.error?.code ?? 'none']
}

const setCapabilities = (...capabilities: string[]) =>
  t.sql('update service_operator_grants set capabilities = $2 where operator_id = $1', [
    publisher.operator.operatorId,
    capabilities,
  ])

async function expectNothingPublished(): Promise<void> {
  const { workspaces, releases, revision } = readStatus(fixture.product)
  expect([workspaces, releases, revision]).toEqual([[], [], 0n])
  await fixture.product.audit.whenIdle()
  expect(fixture.audited).toEqual([])
}

test('a publication whose session is revoked meanwhile is rejected', async () => {
  const { sessionId } = publisher.session
  const revoked = async () =>
    revokeSession(t.identity, await authenticateLogin(t, owner), { sessionId, requestId: null })
  expect(await publishDuring(revoked)).toEqual([401, 'PLATFORM_AUTHENTICATION_FAILED'])
  await expectNothingPublished()
})

test('a publication whose operator loses the capability meanwhile is rejected', async () => {
  const lost = () => setCapabilities('releases:read')
  expect(await publishDuring(lost)).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
  await expectNothingPublished()
})

test('a publication whose operator loses every grant meanwhile is rejected', async () => {
  const lost = () =>
    t.sql('delete from service_operator_grants where operator_id = $1', [
      publisher.operator.operatorId,
    ])
  expect(await publishDuring(lost)).toEqual([403, 'PLATFORM_ACCESS_DENIED'])
  await expectNothingPublished()
})

test('a publication whose operator is disabled meanwhile is rejected', async () => {
  const disabled = () =>
    t.sql('update service_operators set disabled_at_micros = 1 where operator_id = $1', [
      publisher.operator.operatorId,
    ])
  expect(await publishDuring(disabled)).toEqual([401, 'PLATFORM_AUTHENTICATION_FAILED'])
  await expectNothingPublished()
})

test('a publication succeeds although its access token expired meanwhile', {
  tags: ['slow'],
}, async () => {
  const refreshed = async () => {
    t.system.advance(11 * 60_000)
    const refreshToken = publisher.refreshToken!.reveal()
    await refresh(t.identity, { refreshToken, requestId: null })
  }
  expect(await publishDuring(refreshed)).toEqual([201, 'none'])
  expect(readStatus(fixture.product).workspaces).toHaveLength(1)
})

test('a publication is unavailable where its authorization cannot be checked', async () => {
  const proxy = await postgresProxy(t.url)
  hono = originOf(t.another({ url: proxy.url }))
  try {
    const lost = async () => proxy.refuse(true)
    expect(await publishDuring(lost)).toEqual([503, 'PLATFORM_UNAVAILABLE'])
  } finally {
    await proxy.close()
  }
  await expectNothingPublished()
})
