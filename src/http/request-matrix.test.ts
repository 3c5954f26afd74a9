import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mountedRoutes } from '../../testing/management/mounted-routes.ts'
import { BODIES, FRAME, id, SAMPLES } from '../../testing/management/requests.ts'
import type { TestManagement } from '../../testing/openapi/checked-origins.ts'
import {
  type ExternalLogins,
  externalLogins,
  MANAGED_HEADER,
} from '../../testing/providers/external-logins.ts'
import { PACKAGE_MEDIA_TYPE } from '../value/packages/workspace-package.ts'
import { JSON_BODY_BYTES_MAX } from '../wire/operations/operation.ts'
import { jsonSchemaOf } from '../wire/reading/json-schema.ts'
import { EXPECTED_HEAD_HEADER } from '../wire/workspace.ts'
import type { Route } from './management/route.ts'
import { type ManagementApp, managementRoutes } from './management/routes.ts'

/*
 * Goal: no route of the management origin takes a request that is not exactly of its form. Method:
 * each route of the array that the server mounts gets the same request, bent in each of the ways
 * below, from a caller who may do everything. Access comes before form: see access-matrix.test.ts.
 */

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
let hono: TestManagement
/** Credentials of a caller with every capability. */
const authorityFor = ({ path }: R): Record<string, string> => {
  if (path.includes('/managed/')) return MANAGED_HEADER
  const token = path === '/v1/auth/oidc' ? 'a.b.c' : t.owner.accessToken
  return { authorization: `Bearer ${token}` }
}

beforeAll(async () => {
  t = await externalLogins()
  hono = mountedRoutes(t)
})

afterAll(async () => {
  await t.dispose()
})

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
  test('a body with an unknown field is invalid', async () => {
    for (const route of json) {
      const text = JSON.stringify({ ...(bodyOf(route) as object), surprise: 1 })
      expect(await send(route, { text }), nameOf(route)).toBe(`${INVALID} | $: no unknown field`)
    }
  })

  test('a body with a duplicate key is invalid', async () => {
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
  ])('a body that is or has %s is invalid', async (_, text) => {
    for (const route of json) {
      expect((await send(route, { text })).slice(0, INVALID.length), nameOf(route)).toBe(INVALID)
    }
  })

  test('a body over the bound is too large, also if only its declared length is', async () => {
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

  test('a body is invalid on a route that takes none', async () => {
    for (const route of bare) {
      if (route.method === 'GET') continue
      for (const text of ['{}', ' ']) {
        expect(await send(route, { text }), nameOf(route)).toBe(`${INVALID} | body: no body`)
      }
    }
  })

  test('a JSON body is accepted with a quoted charset parameter', async () => {
    for (const route of json) {
      const answer = await send(route, { text: '{', type: 'application/json; charset="utf-8"' })
      expect(answer.slice(0, INVALID.length), nameOf(route)).toBe(INVALID)
    }
  })

  test.each(['text/plain', 'application/json; charset=latin1', 'multipart/form-data', ''])(
    'a body of the media type %j is unsupported',
    async (type) => {
      for (const route of managementRoutes.filter(hasMediaType)) {
        const answer = await send(route, { text: textOf(route), type })
        expect(answer, nameOf(route)).toBe('415 PLATFORM_MEDIA_TYPE_UNSUPPORTED')
      }
    },
  )

  test('a compressed body is unsupported', async () => {
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
  ])('an Idempotency-Key of %s is invalid', async (_, keys) => {
    for (const route of withOperation) {
      expect(await send(route, { text: textOf(route), keys }), nameOf(route)).toMatch(
        /^400 PLATFORM_REQUEST_INVALID \| idempotency-key: /,
      )
    }
  })

  test('every route that requires an Idempotency-Key rejects requests without one', async () => {
    for (const route of withOperation.filter((each) => each.operationId === 'required')) {
      expect(await send(route, { text: textOf(route), keys: [] }), nameOf(route)).toMatch(
        /^400 PLATFORM_REQUEST_INVALID \| idempotency-key: /,
      )
    }
  })
})

test('an unknown or repeated query parameter is invalid', async () => {
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
