import type { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENVIRONMENT, ENVIRONMENT_ID, PROJECT_ID } from '../../build/testing/operators.ts'
import {
  type ExternalLogins,
  externalLogins,
  MANAGED_HEADER,
} from '../../build/testing/providers/external-logins.ts'
import type { ConsoleObjects } from '../product/buckets/console-objects.ts'
import type { Files } from '../product/files/files.ts'
import type { Logs } from '../product/logs/logs.ts'
import type { Product } from '../product/product.ts'
import { ConcurrencyLimit } from '../system/concurrency.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { PACKAGE_MEDIA_TYPE } from '../value/packages/workspace-package.ts'
import { jsonSchemaOf } from '../wire/reading/json-schema.ts'
import { EXPECTED_HEAD_HEADER } from '../wire/workspace.ts'
import { mountManagement } from './management/mount.ts'
import { JSON_BODY_BYTES_MAX, type Route } from './management/route.ts'
import { type ManagementApp, managementRoutes } from './management/routes.ts'

/*
 * Goal: no route of the management origin takes a request that is not exactly of its form. Method:
 * each route of the array that the server mounts gets the same request, bent in each of the ways
 * below, from a caller who may do everything. Access comes before form: see access-matrix.test.ts.
 */

const id = (prefix: string) => `${prefix}_00000000000000000000000001`
const DOCUMENT_ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const MICROS = '1800000000000000'
const configuration = {
  name: 'My app',
  slug: 'my-app',
  region: 'local',
  purpose: 'production',
  protection: 'none',
  location: null,
  workspaceTargets: 'denied',
}
const credential = { credentialId: id('crd'), createdAtMicros: MICROS }
const BASE = '/v1/projects/:projectId/environments/:environmentId'
const BUCKET = `${BASE}/buckets/:bucketId`
const bucket = { name: 'uploads', quotaBytes: null, maximumObjectBytes: '1' }
const CREDENTIALS = `${BASE}/application-clients/:clientId/credentials`

/** A valid body for each route; null for no body, FRAME for bytes. */
const FRAME = Symbol('bytes')
const BODIES: Readonly<Record<string, object | null | typeof FRAME>> = {
  'GET /health/live': null,
  'GET /health/ready': null,
  'GET /v1/openapi.json': null,
  'GET /v1/auth/config': null,
  'POST /v1/auth/exchange': { code: 'x' },
  'POST /v1/auth/refresh': { refreshToken: 'x' },
  'GET /v1/auth/me': null,
  'POST /v1/auth/oidc': { code: 'x' },
  'GET /v1/auth/oidc/config': null,
  'PUT /v1/auth/managed/operators/:operatorId/grants': { sourceRevision: 1, grants: [] },
  'GET /v1/auth/sessions': null,
  'DELETE /v1/auth/sessions/:sessionId': null,
  'GET /v1/auth/resources': null,
  'POST /v1/access/invitations': { operatorName: 'Grace', role: 'observer', scope: ENVIRONMENT },
  'DELETE /v1/access/invitations/:invitationId': null,
  'GET /v1/access/invitation-operations/:operationId': null,
  'GET /v1/access/operators': null,
  'GET /v1/access/operators/:operatorId/sessions': null,
  'POST /v1/access/operators/:operatorId/disable': { changedAtMicros: MICROS },
  'POST /v1/access/operators/:operatorId/enable': { changedAtMicros: MICROS },
  'GET /v1/access/audit': null,
  [`GET ${BASE}`]: null,
  [`POST ${BASE}`]: { configuration, changedAtMicros: MICROS },
  [`PUT ${BASE}`]: { configuration, expectedRevision: 1, changedAtMicros: MICROS },
  [`POST ${BASE}/archive`]: { expectedRevision: 1, changedAtMicros: MICROS },
  [`POST ${BASE}/restore`]: { expectedRevision: 1, changedAtMicros: MICROS },
  [`GET ${BASE}/environment-operations/:operationId`]: null,
  [`GET ${BASE}/status`]: null,
  [`POST ${BASE}/workspace/publish`]: FRAME,
  [`POST ${BASE}/workspace/check`]: FRAME,
  [`POST ${BASE}/releases/:releaseId`]: { against: 'production' },
  [`POST ${BASE}/releases/:releaseId/retire`]: null,
  [`PUT ${BASE}/channels/:channel`]: { releaseId: id('rel'), expectedReleaseId: 'empty' },
  [`POST ${BASE}/channels/:channel/rollback`]: {
    targetReleaseId: id('rel'),
    expectedReleaseId: id('rel'),
  },
  [`GET ${BASE}/serving-policy`]: null,
  [`PUT ${BASE}/serving-policy`]: {
    expectedRevision: 0,
    mode: 'atomic',
    releases: [{ releaseId: id('rel'), weight: 10_000 }],
    changedAtMicros: MICROS,
  },
  [`GET ${BASE}/serving-policy-operations/:operationId`]: null,
  [`GET ${BASE}/schemas/compatibility`]: null,
  [`GET ${BASE}/configuration`]: null,
  [`GET ${BASE}/configuration/history`]: null,
  [`PUT ${BASE}/configuration/:name`]: {
    expectedRevision: 0,
    kind: 'variable',
    value: 'x',
    changedAtMicros: MICROS,
  },
  [`DELETE ${BASE}/configuration/:name`]: { expectedRevision: 0, changedAtMicros: MICROS },
  [`GET ${BASE}/application-clients`]: null,
  [`POST ${BASE}/application-clients`]: {
    clientId: id('app'),
    name: 'web',
    kind: 'public',
    maximumScopes: ['query'],
    createdAtMicros: MICROS,
  },
  [`GET ${CREDENTIALS}`]: null,
  [`POST ${CREDENTIALS}`]: { ...credential, name: 'one', scopes: ['query'] },
  [`POST ${CREDENTIALS}/:credentialId/rotate`]: credential,
  [`POST ${CREDENTIALS}/:credentialId/reveal`]: null,
  [`POST ${CREDENTIALS}/:credentialId/revoke`]: null,
  [`DELETE ${CREDENTIALS}/:credentialId`]: null,
  [`GET ${BASE}/functions`]: null,
  [`GET ${BASE}/schema/tables`]: null,
  [`POST ${BASE}/data/query`]: { target: 'channel:production', table: 'notes' },
  [`GET ${BASE}/data/documents/:table/:documentId`]: null,
  [`POST ${BASE}/data/documents/:table`]: {
    ...{ target: 'channel:production', documentId: DOCUMENT_ID, changedAtMicros: MICROS },
    value: { type: 'object', value: [] },
  },
  [`PUT ${BASE}/data/documents/:table/:documentId`]: {
    ...{ target: 'channel:production', expectedRevision: 1, changedAtMicros: MICROS },
    value: { type: 'object', value: [] },
  },
  [`DELETE ${BASE}/data/documents/:table/:documentId`]: {
    ...{ target: 'channel:production', expectedRevision: 1, changedAtMicros: MICROS },
  },
  [`GET ${BASE}/instances/healthz`]: null,
  [`GET ${BASE}/metrics`]: null,
  [`GET ${BASE}/scheduled`]: null,
  [`POST ${BASE}/scheduled/:scheduledId/cancel`]: null,
  [`GET ${BASE}/buckets`]: null,
  [`POST ${BASE}/buckets`]: { configuration: bucket, changedAtMicros: MICROS },
  [`GET ${BUCKET}`]: null,
  [`PUT ${BUCKET}`]: { configuration: bucket, expectedRevision: 1, changedAtMicros: MICROS },
  [`POST ${BUCKET}/archive`]: { expectedRevision: 1, changedAtMicros: MICROS },
  [`GET ${BASE}/bucket-operations/:operationId`]: null,
  [`GET ${BUCKET}/keys`]: null,
  [`POST ${BUCKET}/keys`]: { name: 'ci', access: 'read', changedAtMicros: MICROS },
  [`POST ${BUCKET}/keys/:storageKeyId/rotate`]: { changedAtMicros: MICROS },
  [`POST ${BUCKET}/keys/:storageKeyId/revoke`]: { changedAtMicros: MICROS },
  [`GET ${BUCKET}/objects`]: null,
  [`GET ${BUCKET}/objects/:objectKey`]: null,
  [`PUT ${BUCKET}/objects/:objectKey`]: FRAME,
  [`DELETE ${BUCKET}/objects/:objectKey`]: null,
  [`GET ${BASE}/logs`]: null,
  [`GET ${BASE}/logs/follow`]: null,
  [`GET ${BASE}/logs/archive-status`]: null,
  [`POST ${BASE}/logs/prune`]: { beforeMicros: MICROS, maximum: 1 },
}

const SAMPLES: Readonly<Record<string, string>> = {
  projectId: PROJECT_ID,
  environmentId: ENVIRONMENT_ID,
  operatorId: id('opr'),
  sessionId: id('ops'),
  invitationId: id('opi'),
  operationId: id('opn'),
  releaseId: id('rel'),
  clientId: id('app'),
  credentialId: id('crd'),
  scheduledId: id('sch'),
  bucketId: id('bkt'),
  storageKeyId: id('stk'),
  objectKey: 'a%20folder/a%2Fname',
  channel: 'production',
  name: 'API_KEY',
  table: 'notes',
  documentId: DOCUMENT_ID,
}

type R = Route<ManagementApp>
const nameOf = ({ method, path }: R): string => `${method} ${path}`
const bodyOf = (route: R) => BODIES[nameOf(route)]!
const isJson = (route: R): boolean => route.body !== null && !('mediaType' in route.body)
/** Routes that accept a JSON object, also an empty one. */
const json = managementRoutes.filter((route) => {
  return isJson(route) || (route.body === null && route.method === 'POST')
})
/** Routes that accept no body. */
const bare = managementRoutes.filter((route) => route.body === null && route.method !== 'POST')
/** Routes whose body has one media type. */
const hasMediaType = (route: R): boolean => {
  const isAny = route.body !== null && 'mediaType' in route.body && route.body.mediaType === '*/*'
  return !isAny && !bare.includes(route)
}
const withOperation = managementRoutes.filter((route) => route.operationId !== 'none')

let t: ExternalLogins
let hono: Hono
/** Credentials of a caller with every capability. */
const authorityFor = ({ path }: R): Record<string, string> => {
  if (path.includes('/managed/')) return MANAGED_HEADER
  const token = path === '/v1/auth/oidc' ? 'a.b.c' : t.owner.accessToken
  return { authorization: `Bearer ${token}` }
}

beforeAll(async () => {
  t = await externalLogins()
  hono = mountManagement<ManagementApp>({
    app: {
      identity: t.identity,
      sessions: t.identity,
      managementOrigin: null,
      linkableEnvironments: async () => [],
      openApiDocument: () => '{}',
      environment: { projectId: PROJECT_ID, environmentId: ENVIRONMENT_ID },
      product: untouchable(),
      metrics: new Metrics(t.system),
      logs: unreadable(),
      files: unused('files') as Files,
      objects: unused('objects') as ConsoleObjects,
      objectUploads: new ConcurrencyLimit(1, 'PRODUCT_UNAVAILABLE'),
      health: () => expect.unreachable('the health was asked for'),
    },
    system: t.system,
    log: t.log.log,
    routes: managementRoutes,
  })
})

afterAll(async () => {
  await t.dispose()
})

/** A Product that fails when used: invalid requests must be rejected before. */
function untouchable(): Product {
  const parts: Partial<Product> = { publications: new ConcurrencyLimit(1, 'PRODUCT_UNAVAILABLE') }
  return new Proxy(parts as Product, {
    get: (target, name) =>
      Reflect.get(target, name) ?? expect.unreachable(`the Product was asked for ${String(name)}`),
  })
}

function unused(part: string): object {
  const fail = () => expect.unreachable(`the ${part} were used`)
  return new Proxy({}, { get: fail })
}

function unreadable(): Logs {
  return new Proxy({} as Logs, {
    get: (_, name) => expect.unreachable(`the log was asked for ${String(name)}`),
  })
}

interface Bent {
  readonly query?: string
  readonly type?: string
  readonly text?: string | Uint8Array
  readonly headers?: readonly (readonly [string, string])[]
  readonly keys?: readonly string[]
}

async function send(route: R, bent: Bent): Promise<string> {
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => SAMPLES[name]!)
  const headers = new Headers(authorityFor(route))
  if (bodyOf(route) === FRAME) headers.set(EXPECTED_HEAD_HEADER, 'empty')
  if (bent.text !== undefined) headers.set('content-type', bent.type ?? 'application/json')
  for (const [name, value] of bent.headers ?? []) headers.set(name, value)
  const keys = bent.keys ?? (route.operationId === 'required' ? [id('opn')] : [])
  for (const key of keys) headers.append('idempotency-key', key)
  const response = await hono.request(path + (bent.query ?? ''), {
    method: route.method,
    headers,
    ...(bent.text !== undefined && { body: bent.text as BodyInit }),
  })
  const body = (await response.json()) as {
    error: { code: string; violations?: { path: string; rule: string }[] }
  }
  expect(response.headers.get('cache-control'), nameOf(route)).toBe('no-store')
  const rules = (body.error.violations ?? []).map((each) => `${each.path}: ${each.rule}`)
  return [`${response.status} ${body.error.code}`, ...rules].join(' | ')
}

const textOf = (route: R): string => JSON.stringify(bodyOf(route) ?? {})
const INVALID = '400 PLATFORM_REQUEST_INVALID'

test('the table names exactly the routes that the server has', () => {
  expect(Object.keys(BODIES).toSorted()).toEqual(managementRoutes.map(nameOf).toSorted())
  for (const route of managementRoutes) {
    const body = bodyOf(route)
    expect(typeof body === 'object' && body !== null, nameOf(route)).toBe(isJson(route))
  }
})

describe('a body', () => {
  test('with an unknown field is invalid', async () => {
    for (const route of json) {
      const text = JSON.stringify({ ...(bodyOf(route) as object), surprise: 1 })
      expect(await send(route, { text }), nameOf(route)).toBe(`${INVALID} | $: no unknown field`)
    }
  })

  test('with a duplicate key is invalid', async () => {
    for (const route of json) {
      const [key = 'x', value = 1] = Object.entries(bodyOf(route) ?? {})[0] ?? []
      const twice = `${JSON.stringify(key)}:${JSON.stringify(value)}`
      const text = textOf(route).replace(/^\{/, `{${twice},`).replace(/,\}$/, `,${twice}}`)
      expect(await send(route, { text }), nameOf(route)).toMatch(/^400 .*(twice|duplicate|once)/)
    }
  })

  test.each([
    ['no object', '[]'],
    ['a text', '"x"'],
    ['nothing', 'null'],
    ['no JSON', '{'],
    ['two documents', '{}{}'],
    ['a __proto__', '{"__proto__":{}}'],
    ['a byte order mark', '\ufeff{}'],
  ])('that is or has %s is invalid', async (_, text) => {
    for (const route of json) {
      expect((await send(route, { text })).slice(0, INVALID.length), nameOf(route)).toBe(INVALID)
    }
  })

  test('over the bound is too large, also where only its declared length is', async () => {
    for (const route of managementRoutes.filter((each) => !bare.includes(each))) {
      const isFrame = bodyOf(route) === FRAME
      const bound = route.body === null || isFrame ? null : (route.body as { bytesMax?: number })
      const bytesMax = bound?.bytesMax ?? JSON_BODY_BYTES_MAX
      const type = isFrame ? (route.body as { mediaType: string }).mediaType : 'application/json'
      const declared = [['content-length', String(2 ** 26 + 1)]] as const
      const tooLarge = '413 PLATFORM_BODY_TOO_LARGE'
      expect(await send(route, { text: '{}', type, headers: declared }), nameOf(route)).toBe(
        tooLarge,
      )
      if (isFrame) continue
      const text = textOf(route).padEnd(bytesMax + 1)
      expect(await send(route, { text }), nameOf(route)).toBe(tooLarge)
    }
  })

  test('where none is taken is invalid', async () => {
    for (const route of bare) {
      if (route.method === 'GET') continue
      for (const text of ['{}', ' ']) {
        expect(await send(route, { text }), nameOf(route)).toBe(`${INVALID} | body: no body`)
      }
    }
  })

  test('of JSON whose encoding is quoted is read', async () => {
    for (const route of json) {
      const answer = await send(route, { text: '{', type: 'application/json; charset="utf-8"' })
      expect(answer.slice(0, INVALID.length), nameOf(route)).toBe(INVALID)
    }
  })

  test.each(['text/plain', 'application/json; charset=latin1', 'multipart/form-data', ''])(
    'of the media type %j is unsupported',
    async (type) => {
      for (const route of managementRoutes.filter(hasMediaType)) {
        const answer = await send(route, { text: textOf(route), type })
        expect(answer, nameOf(route)).toBe('415 PLATFORM_MEDIA_TYPE_UNSUPPORTED')
      }
    },
  )

  test('that is compressed is unsupported', async () => {
    for (const route of managementRoutes.filter((each) => !bare.includes(each))) {
      const type = bodyOf(route) === FRAME ? PACKAGE_MEDIA_TYPE : 'application/json'
      const text = Bun.gzipSync('{}')
      const answer = await send(route, { text, type, headers: [['content-encoding', 'gzip']] })
      expect(answer, nameOf(route)).toBe('415 PLATFORM_MEDIA_TYPE_UNSUPPORTED')
    }
  })
})

describe('an Idempotency-Key', () => {
  test.each<[string, readonly string[]]>([
    ['two headers', [id('opn'), id('opn')]],
    ['another identifier', [id('opi')]],
    ['lower case', [id('opn').replace(/0/g, 'a')]],
    ['nothing', ['']],
  ])('of %s is invalid', async (_, keys) => {
    for (const route of withOperation) {
      expect(await send(route, { text: textOf(route), keys }), nameOf(route)).toMatch(
        /^400 PLATFORM_REQUEST_INVALID \| idempotency-key: /,
      )
    }
  })

  test('is asked for by every route that requires one', async () => {
    for (const route of withOperation.filter((each) => each.operationId === 'required')) {
      expect(await send(route, { text: textOf(route), keys: [] }), nameOf(route)).toMatch(
        /^400 PLATFORM_REQUEST_INVALID \| idempotency-key: /,
      )
    }
  })
})

test('a query parameter that is unknown, or that comes twice, is invalid', async () => {
  for (const route of managementRoutes) {
    const declared = Object.keys(jsonSchemaOf(route.query).properties ?? {})
    for (const name of ['surprise', ...declared]) {
      const twice = await send(route, { query: `?${name}=1&${name}=1` })
      expect(twice, nameOf(route)).toBe(`${INVALID} | query: each parameter at most once`)
    }
    for (const name of ['surprise', '__proto__', 'constructor']) {
      const unknown = await send(route, { query: `?${name}=1` })
      expect(unknown.split(' | '), nameOf(route)).toContain('query: no unknown field')
    }
  }
})
