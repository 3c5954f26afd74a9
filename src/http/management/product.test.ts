import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ENVIRONMENT_ID, PROJECT_ID } from '../../../testing/product-roots.ts'
import {
  answer,
  BASE,
  JSON_TYPE,
  ProductRoutes,
  ROUTES,
  rejection,
} from '../../../testing/product-routes.ts'
import { functionManifest, makePackage, type TestProduct } from '../../../testing/products.ts'
import { CAPABILITIES, type Capability } from '../../value/capabilities.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import type { Json } from '../../value/strict-json.ts'
import { FunctionCatalog, TableCatalog } from '../../wire/catalogs.ts'
import { Promoted } from '../../wire/channels.ts'
import { EnvironmentState } from '../../wire/environment.ts'
import { Retired, Validated } from '../../wire/releases.ts'
import { Status } from '../../wire/status.ts'
import { Published } from '../../wire/workspace.ts'

const CREDENTIAL = '{base}/application-clients/:clientId/credentials/:credentialId'
const DELIVERIES = '{base}/http-mounts/:mount/deliveries'
const FUNCTIONS = [functionManifest('notes.list')]
const TABLES: readonly TableManifest[] = [
  {
    name: 'notes',
    fields: { body: { type: 'string' }, stars: { type: 'optional', inner: { type: 'int64' } } },
    indexes: [{ name: 'byBody', fields: ['body'], unique: true }],
  },
]

let routes: ProductRoutes
let fixture: TestProduct
beforeEach(async () => {
  routes = await ProductRoutes.open()
  fixture = routes.harness
  fixture.engine.describe = async () =>
    ({ functions: FUNCTIONS, tables: TABLES }) as unknown as Json
})
afterEach(() => fixture.close())

function call(...parameters: Parameters<ProductRoutes['call']>) {
  return routes.call(...parameters)
}
function publish(...parameters: Parameters<ProductRoutes['publish']>) {
  return routes.publish(...parameters)
}

describe('access', () => {
  test('each route needs its capability at the exact scope, and a session', async () => {
    const other = fixture.system.ids.make('env')
    for (const route of ROUTES) {
      const path = route.path
        .replace(/^.*:environmentId/, '')
        .replace(':releaseId', fixture.system.ids.make('rel'))
        .replace(':channel', 'production')
        .replace(':credentialId', fixture.system.ids.make('crd'))
        .replace(':clientId', fixture.system.ids.make('app'))
        .replace(':operationId', fixture.system.ids.make('opn'))
        .replace(':name', 'API_KEY')
      const access = route.access as { capability: Capability }
      routes.capabilities = CAPABILITIES
      await rejection(
        call(route.method, path, { token: null }),
        401,
        'PLATFORM_AUTHENTICATION_FAILED',
      )
      const base = BASE.replace(ENVIRONMENT_ID, other)
      await rejection(call(route.method, path, { base }), 403, 'PLATFORM_ACCESS_DENIED')
      routes.capabilities = CAPABILITIES.filter((capability) => capability !== access.capability)
      await rejection(call(route.method, path), 403, 'PLATFORM_ACCESS_DENIED')
    }
  })

  test('an Application Key is not accepted as a session', async () => {
    for (const prefix of ['rk_pub_v1_', 'rk_sec_v1_', 'rk_dev_v1_']) {
      const token = prefix + 'a'.repeat(43)
      await rejection(call('GET', '/status', { token }), 401, 'PLATFORM_AUTHENTICATION_FAILED')
    }
  })

  test('capabilities are those of the contract and of what stands beside it', () => {
    const table = ROUTES.map(({ method, path, access }) => {
      const { capability } = access as { capability: string }
      return `${method} ${path.replace(/^.*:environmentId/, '{base}')} ${capability}`
    })
    expect(table).toEqual([
      'GET {base} environments:read',
      'POST {base} environments:manage',
      'PUT {base} environments:manage',
      'POST {base}/archive environments:manage',
      'POST {base}/restore environments:manage',
      'GET {base}/environment-operations/:operationId environments:read',
      'GET {base}/status releases:read',
      'POST {base}/workspace/publish releases:publish',
      'POST {base}/workspace/check releases:publish',
      'POST {base}/releases/:releaseId releases:publish',
      'POST {base}/releases/:releaseId/retire releases:publish',
      'PUT {base}/channels/:channel channels:promote',
      'POST {base}/channels/:channel/rollback channels:promote',
      'GET {base}/serving-policy releases:read',
      'PUT {base}/serving-policy channels:promote',
      'GET {base}/serving-policy-operations/:operationId releases:read',
      'GET {base}/schemas/compatibility releases:read',
      'GET {base}/functions releases:read',
      'GET {base}/schema/tables releases:read',
      'GET {base}/configuration configuration:read',
      'GET {base}/configuration/history configuration:read',
      'PUT {base}/configuration/:name configuration:manage',
      'DELETE {base}/configuration/:name configuration:manage',
      'GET {base}/application-clients credentials:read',
      'POST {base}/application-clients credentials:manage',
      'GET {base}/application-clients/:clientId/credentials credentials:read',
      'POST {base}/application-clients/:clientId/credentials credentials:manage',
      `POST ${CREDENTIAL}/rotate credentials:manage`,
      `POST ${CREDENTIAL}/reveal credentials:read`,
      `POST ${CREDENTIAL}/revoke credentials:manage`,
      `DELETE ${CREDENTIAL} credentials:manage`,
      'GET {base}/http-mounts releases:read',
      'PUT {base}/http-mounts/:mount channels:promote',
      'DELETE {base}/http-mounts/:mount channels:promote',
      `GET ${DELIVERIES} logs:read`,
      `GET ${DELIVERIES}/:scheduledId logs:read`,
      `POST ${DELIVERIES}/:scheduledId/replay data:write`,
      'GET {base}/http-mount-operations/:operationId releases:read',
      'GET {base}/instances/healthz environments:read',
      'GET {base}/instances/doctor environments:manage',
      'GET {base}/metrics usage:read',
      'GET {base}/metrics/functions usage:read',
    ])
  })
})

test('a new Environment is at revision zero and stopped', async () => {
  expect(await answer(call('GET', '/status'), 200, Status)).toEqual({
    version: 1,
    revision: '0',
    lifecycle: 'active',
    workspaces: [],
    releases: [],
    channels: [],
    servingPolicy: null,
  })
  expect(await answer(call('GET', ''), 200, EnvironmentState)).toEqual({
    version: 1,
    projectId: PROJECT_ID,
    environmentId: ENVIRONMENT_ID,
    desired: {
      revision: '0',
      lifecycle: 'active',
      configuration: {
        name: 'My app',
        slug: 'my-app',
        region: 'local',
        purpose: 'development',
        protection: 'none',
        location: null,
        workspaceTargets: 'allowed',
      },
    },
    observed: { revision: '0', lifecycle: 'active', serving: 'stopped' },
    createdAtMicros: '1800000000000000',
    updatedAtMicros: '1800000000000000',
  })
})

test('a package is published, validated, promoted and shown', { tags: ['slow'] }, async () => {
  const frame = makePackage({ functions: FUNCTIONS, tables: TABLES })
  const published = await answer(publish(frame, 'empty'), 201, Published)
  const again = await answer(publish(frame, 'empty'), 200, Published)
  expect(again).toEqual({ ...published, replayed: true })
  const { releaseId } = published
  const validate = () => call('POST', `/releases/${releaseId}`, { body: {} })
  const validated = await answer(validate(), 200, Validated)
  expect(validated).toMatchObject({ releaseId, state: 'validated' })
  expect(await answer(validate(), 200, Validated)).toEqual(validated)
  const body = { releaseId, expectedReleaseId: 'empty' }
  const promoted = await answer(call('PUT', '/channels/production', { body }), 200, Promoted)
  expect(promoted).toMatchObject({ channel: 'production', previousReleaseId: null, revision: '1' })
  await rejection(call('PUT', '/channels/production', { body }), 409, 'PRODUCT_CAS_CONFLICT')
  const status = await answer(call('GET', '/status'), 200, Status)
  expect(status).toMatchObject({
    revision: '3',
    workspaces: [{ name: 'default', revisionId: published.revisionId, releaseId }],
    releases: [{ releaseId, state: 'validated', packageDigest: published.packageDigest }],
    channels: [{ channel: 'production', releaseId, revision: '1', history: [] }],
  })
  for (const target of ['channel:production', 'workspace:default', `release:${releaseId}`]) {
    const catalog = await answer(call('GET', `/functions?target=${target}`), 200, FunctionCatalog)
    const functions = FUNCTIONS.map((item) => ({
      ...item,
      uses: { network: [], secrets: [], storage: 'none' },
    }))
    expect(catalog).toEqual({ version: 1, releaseId, functions })
    const tables = await answer(call('GET', `/schema/tables?target=${target}`), 200, TableCatalog)
    expect(tables).toEqual({ version: 1, releaseId, tables: TABLES })
  }
  expect((await answer(call('GET', ''), 200, EnvironmentState)).observed.serving).toBe('serving')
  await fixture.product.audit.whenIdle()
  expect(
    fixture.audited.map(({ operation, requestId }) => [operation, requestId?.slice(0, 4)]),
  ).toEqual([
    ['product.workspace.publish', 'req_'],
    ['product.release.validate', 'req_'],
    ['product.channel.promote', 'req_'],
  ])
})

test('a Channel rolls back, and the Release that it left is retired', async () => {
  const frames = [makePackage({ source: 'a' }), makePackage({ source: 'b' })]
  fixture.engine.describe = async () => ({ functions: [], tables: [] }) as unknown as Json
  const released: Published[] = []
  for (const frame of frames) {
    const published = await answer(
      publish(frame, released.at(-1)?.revisionId ?? 'empty'),
      201,
      Published,
    )
    released.push(published)
    const { releaseId } = published
    await answer(call('POST', `/releases/${releaseId}`, { body: {} }), 200, Validated)
    await answer(call('PUT', '/channels/production', { body: { releaseId } }), 200, Promoted)
  }
  const [a, b] = released.map(({ releaseId }) => releaseId)
  const body = { targetReleaseId: a, expectedReleaseId: b }
  const path = '/channels/production/rollback'
  await rejection(call('POST', `/releases/${b}/retire`), 409, 'PRODUCT_STATE_CONFLICT')
  expect(await answer(call('POST', path, { body }), 200, Promoted)).toMatchObject({
    channel: 'production',
    releaseId: a,
    previousReleaseId: b,
    revision: '3',
  })
  await rejection(call('POST', path, { body }), 409, 'PRODUCT_CAS_CONFLICT')
  await rejection(
    call('POST', path, { body: { targetReleaseId: a } }),
    400,
    'PLATFORM_REQUEST_INVALID',
  )
  for (const empty of [undefined, {}]) {
    const retired = await answer(
      call('POST', `/releases/${b}/retire`, { body: empty }),
      200,
      Retired,
    )
    expect(retired).toEqual({ version: 1, releaseId: b, state: 'retired' })
  }
  await rejection(call('POST', `/releases/${b}`, { body: {} }), 410, 'PRODUCT_RELEASE_RETIRED')
  const forward = { body: { releaseId: b } }
  await rejection(call('PUT', '/channels/production', forward), 410, 'PRODUCT_RELEASE_RETIRED')
  await rejection(call('GET', `/functions?target=release:${b}`), 410, 'PRODUCT_RELEASE_RETIRED')
  const status = await answer(call('GET', '/status'), 200, Status)
  expect(status.releases.map(({ state }) => state)).toEqual(['retired', 'validated'])
  expect(status.channels).toMatchObject([{ releaseId: a, history: [b, a] }])
})

describe('a publication', () => {
  test('needs its header exactly once, in canonical form', async () => {
    const frame = makePackage()
    const id = fixture.system.ids.make('wsr')
    for (const head of [
      '',
      'EMPTY',
      'empty, empty',
      id.toLowerCase(),
      fixture.system.ids.make('rel'),
    ]) {
      await rejection(publish(frame, head), 400, 'PLATFORM_REQUEST_INVALID')
    }
    const without = call('POST', '/workspace/publish', { body: frame })
    await rejection(without, 400, 'PLATFORM_REQUEST_INVALID')
  })

  test('needs its media type', async () => {
    for (const type of ['application/octet-stream', `${PACKAGE_MEDIA_TYPE}; a=b`, JSON_TYPE]) {
      const response = publish(makePackage(), 'empty', { 'content-type': type })
      await rejection(response, 415, 'PLATFORM_MEDIA_TYPE_UNSUPPORTED')
    }
  })

  test('a stale HEAD is a conflict, and an invalid package is invalid', async () => {
    await answer(publish(makePackage(), 'empty'), 201, Published)
    const stale = publish(makePackage({ source: 'b' }), 'empty')
    await rejection(stale, 409, 'PRODUCT_CAS_CONFLICT')
    const error = await rejection(publish(new Uint8Array(60), 'empty'), 400, 'PRODUCT_INVALID')
    expect(error.violations).toEqual([{ path: 'package', rule: 'a Workspace package' }])
  })

  test('a publication over the bound is rejected before it is read', async () => {
    const declared = { 'content-length': String(PACKAGE_BYTES_MAX + 1) }
    await rejection(publish(makePackage(), 'empty', declared), 413, 'PLATFORM_BODY_TOO_LARGE')
  })

  test.each<[string, () => Uint8Array]>([
    ['is not a package', () => new Uint8Array(1)],
    ['continues behind its end', () => makePackage()],
    ['states more than the bound', () => makePackage().fill(0xff, 12, 16)],
  ])('a publication that %s is not read to the end', async (_, begin) => {
    let sent = 0
    const chunk = new Uint8Array(1024 * 1024)
    const endless = new ReadableStream({
      start: (controller) => controller.enqueue(begin()),
      pull(controller) {
        sent += chunk.length
        controller.enqueue(chunk)
      },
    })
    await rejection(publish(endless, 'empty'), 400, 'PRODUCT_INVALID')
    expect(sent).toBeLessThan(8 * chunk.length)
  })

  test('a publication is rejected as unavailable while four others are read', async () => {
    const hold = Promise.withResolvers<void>()
    let read = 0
    const slow = () => {
      const pull = async (controller: ReadableStreamDefaultController) => {
        read += 1
        await hold.promise
        controller.enqueue(makePackage())
        controller.close()
      }
      return new ReadableStream({ pull }, { highWaterMark: 0 })
    }
    const waiting = Array.from({ length: 4 }, () => publish(slow(), 'empty'))
    await expect.poll(() => read).toBe(4)
    const error = await rejection(publish(makePackage(), 'empty'), 503, 'PRODUCT_UNAVAILABLE')
    expect(error).toMatchObject({ retryable: true })
    hold.resolve()
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, 200, 200, 201])
  })
})

test('a Release whose manifest differs from its code fails the validation', async () => {
  const { releaseId } = await answer(
    publish(makePackage({ tables: TABLES }), 'empty'),
    201,
    Published,
  )
  const response = call('POST', `/releases/${releaseId}`, { body: {} })
  const error = await rejection(response, 400, 'PRODUCT_INCOMPATIBLE')
  expect(error.violations).toEqual([
    {
      path: 'checks.code:functions',
      rule: 'the manifest differs from the code: notes.list',
    },
  ])
})

test('invalid paths and bodies are rejected as invalid', async () => {
  const releaseId = fixture.system.ids.make('rel')
  const invalid = 'PLATFORM_REQUEST_INVALID'
  await rejection(call('POST', '/releases/rel_x', { body: {} }), 400, invalid)
  await rejection(call('POST', `/releases/${releaseId}`, { body: { against: 'X' } }), 400, invalid)
  await rejection(call('POST', `/releases/${releaseId}`, { body: { x: 1 } }), 400, invalid)
  await rejection(call('POST', `/releases/${releaseId}`, { body: {} }), 404, 'PRODUCT_NOT_FOUND')
  await rejection(call('PUT', '/channels/Prod', { body: { releaseId } }), 400, invalid)
  await rejection(call('PUT', '/channels/prod', { body: {} }), 400, invalid)
  const expectedReleaseId = null
  const body = { releaseId, expectedReleaseId }
  await rejection(call('PUT', '/channels/prod', { body }), 400, invalid)
  await rejection(call('GET', '/functions'), 400, invalid)
  await rejection(call('GET', '/functions?target=a&target=b'), 400, invalid)
  await rejection(call('GET', '/functions?target=nonsense'), 400, 'PRODUCT_INVALID')
  await rejection(call('GET', '/functions?target=channel:none'), 404, 'PRODUCT_NOT_FOUND')
  await rejection(call('GET', '/schema/tables'), 400, invalid)
  await rejection(call('GET', '/schema/tables?target=nonsense'), 400, 'PRODUCT_INVALID')
  await rejection(call('GET', '/schema/tables?target=channel:none'), 404, 'PRODUCT_NOT_FOUND')
  await rejection(call('GET', '/application-clients/app_x/credentials'), 400, invalid)
})
