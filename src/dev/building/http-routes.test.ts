/** Builds of a Workspace with a file http.ts: its manifest, and the mistakes that are reported. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { poolBench } from '../../../testing/runners.ts'
import type { RunnerPool } from '../../engine/runners/runner-pool.ts'
import { isFault } from '../../errors/fault.ts'
import { codeChecks } from '../../product/compatibility/release-checks.ts'
import { realSystem } from '../../system/system.ts'
import type { HttpRouteManifest } from '../../value/http/routes.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import { parseDescription } from '../../wire/files/manifest.ts'
import { buildWorkspace, type Describe } from './build.ts'

const FUNCTIONS = `
import { internalAction, internalMutation, internalQuery, mutation, query, v } from 'svc'
const args = { delivery: v.httpDelivery() }
export const onEvent = internalMutation({ arguments: args, handler: () => null })
export const forward = internalAction({ arguments: args, handler: () => null })
export const read = internalQuery({ arguments: args, handler: () => null })
export const open = mutation({ clients: ['public'], arguments: args, handler: () => null })
export const own = internalMutation({ auth: 'user', arguments: args, handler: () => null })
export const refund = internalAction({
  uses: { network: [], secrets: ['PAYMENTS'] }, handler: () => null,
})
export const order = query({
  clients: ['public'], arguments: { id: v.string(), count: v.int64() }, returns: v.httpResponse(),
  handler: () => ({}),
})
export const more = internalMutation({
  arguments: { ...args, more: v.optional(v.string()) }, handler: () => null,
})
`
const directory = mkdtempSync(join(tmpdir(), 'svc-http-'))
let pool: RunnerPool
let describe: Describe
beforeAll(async () => {
  mkdirSync(join(directory, 'functions'))
  writeFileSync(
    join(directory, 'schema.ts'),
    `import { defineSchema } from 'svc'\nexport default defineSchema({})\n`,
  )
  writeFileSync(join(directory, 'functions/payments.ts'), FUNCTIONS)
  pool = poolBench({}).pool
  await pool.start({ sandbox: 'preferred' })
  const { ids } = realSystem()
  describe = (bundle) => pool.describe({ ...bundle, releaseId: ids.make('rel') })
})
afterAll(async () => {
  await pool.close()
  rmSync(directory, { recursive: true })
})

const HEAD = [
  `import { endpoint, hook, httpRoutes, signature } from 'svc'`,
  `import { api, internal } from './_generated/api'`,
  '',
].join('\n')
const declared = (routes: string): string => `${HEAD}export default httpRoutes({\n${routes}\n})\n`
const HANDLED = 'handler: internal.payments.onEvent'

/** Builds the Workspace with this text of http.ts. */
async function build(text: string): Promise<WorkspaceDescription> {
  writeFileSync(join(directory, 'http.ts'), text)
  return (await buildWorkspace(directory, { describe })).description
}

async function routesOf(text: string): Promise<readonly HttpRouteManifest[] | undefined> {
  return (await build(text)).http
}

async function rejectionOf(text: string): Promise<string> {
  const error = await build(text).catch((thrown: unknown) => thrown)
  if (!isFault(error, 'WORKSPACE_INVALID')) throw error
  return error.detail!
}

test('the manifest of a hook names its reply where that is the result', async () => {
  const replies = ['', `reply: 'accepted',`, `reply: 'result',`]
  const routes = replies.map(
    (reply, i) => `r${i}: hook({ path: '/${i}', verify: 'none', ${reply} ${HANDLED} }),`,
  )
  const found = await routesOf(declared(routes.join('\n')))
  const given = found!.map((route) => (route.kind === 'hook' ? (route.reply ?? null) : route))
  expect(given).toEqual([null, null, 'result'])
  expect(found!.map((route) => Object.hasOwn(route, 'reply'))).toEqual([false, false, true])
})

test('hooks are part of the manifest, sorted by name, with their defaults', async () => {
  const routes = await routesOf(
    declared(`
  stripe: hook({
    path: '/stripe', verify: signature.stripe({ secret: 'STRIPE_WEBHOOK' }), ${HANDLED},
    once: (delivery) => delivery.json.id,
  }),
  github: hook({
    path: '/hooks/:repository', methods: ['PUT', 'POST'], maximumBytes: 1000,
    headers: ['x-b', 'x-a'], verify: signature.github({ secret: 'GITHUB' }),
    handler: internal.payments.forward,
  }),`),
  )
  expect(routes).toEqual([
    {
      kind: 'hook',
      name: 'github',
      path: '/hooks/:repository',
      methods: ['POST', 'PUT'],
      maximumBytes: 1000,
      headers: [
        'content-type',
        'x-a',
        'x-b',
        'x-github-delivery',
        'x-github-event',
        'x-github-hook-id',
      ],
      verify: { scheme: 'github', secret: 'GITHUB' },
      hasOnce: false,
      function: 'payments.forward',
    },
    {
      kind: 'hook',
      name: 'stripe',
      path: '/stripe',
      methods: ['POST'],
      maximumBytes: 262_144,
      headers: ['content-type'],
      verify: { scheme: 'stripe', secret: 'STRIPE_WEBHOOK', toleranceSeconds: 300 },
      hasOnce: true,
      function: 'payments.onEvent',
    },
  ])
})

test.each([
  [`'none'`, null],
  [
    `signature.standardWebhooks({ secret: 'S', toleranceSeconds: 9 })`,
    { scheme: 'standardWebhooks', secret: 'S', toleranceSeconds: 9 },
  ],
  [`signature.slack({ secret: 'S' })`, { scheme: 'slack', secret: 'S', toleranceSeconds: 300 }],
  [`signature.twilio({ secret: 'S' })`, { scheme: 'twilio', secret: 'S' }],
  [`signature.jwt({ issuer: 'https://a' })`, { scheme: 'jwt', issuer: 'https://a' }],
  [
    `signature.hmac({ secret: 'S', header: 'X-Sig', algorithm: 'sha1', encoding: 'hex' })`,
    {
      scheme: 'hmac',
      secret: 'S',
      header: 'x-sig',
      algorithm: 'sha1',
      encoding: 'hex',
      prefix: '',
    },
  ],
  [
    `signature.hmac({ secret: 'S', header: 'x-sig', algorithm: 'sha512', encoding: 'base64',
       prefix: 'v1=', timestampHeader: 'x-time' })`,
    {
      scheme: 'hmac',
      secret: 'S',
      header: 'x-sig',
      algorithm: 'sha512',
      encoding: 'base64',
      prefix: 'v1=',
      timestampHeader: 'x-time',
      toleranceSeconds: 300,
    },
  ],
])('a verification is data of the manifest: %s', { tags: ['slow'] }, async (verify, expected) => {
  const routes = await routesOf(
    declared(`  a: hook({ path: '/', verify: ${verify}, ${HANDLED} }),`),
  )
  expect(routes![0]).toMatchObject({ kind: 'hook', verify: expected })
})

test('a Workspace without routes has none in its manifest', async () => {
  expect(await routesOf(declared(''))).toBeUndefined()
})

test('a manifest whose routes differ from the code does not pass', async () => {
  const description = await build(declared(`  a: hook({ path: '/', verify: 'none', ${HANDLED} }),`))
  const { http, ...without } = description
  const outcomes = (manifest: WorkspaceDescription, code: WorkspaceDescription) =>
    codeChecks(manifest, code as unknown as Json).flatMap(({ name, outcome }) =>
      name === 'code:http' ? [outcome] : [],
    )
  const changed = { ...description, http: [{ ...http![0]!, maximumBytes: 5 }] }
  expect(outcomes(description, description)).toEqual(['passed'])
  expect(outcomes(changed, description)).toEqual(['failed'])
  expect(outcomes(without, description)).toEqual(['failed'])
  expect(outcomes(without, without)).toEqual([])
})

const HMAC = `secret: 'S', header: 'x-sig', algorithm: 'sha256', encoding: 'hex'`

test.each([
  [`verify: 'none', ${HANDLED}`, 'path is undefined'],
  [`path: 'stripe', verify: 'none', ${HANDLED}`, 'path is "stripe"'],
  [`path: '/a', ${HANDLED}`, 'verify is undefined. Write signature.standardWebhooks'],
  [`path: '/a', verify: 'stripe', ${HANDLED}`, 'verify is "stripe"'],
  [`path: '/a', verify: 'none'`, 'handler is undefined'],
  [`path: '/a', verify: 'none', methods: ['HEAD'], ${HANDLED}`, 'methods lists "HEAD"'],
  [`path: '/a', verify: 'none', methods: [], ${HANDLED}`, 'not a list of methods'],
  [`path: '/a', verify: 'none', maximumBytes: 524289, ${HANDLED}`, 'from 1 to 524288'],
  [`path: '/a', verify: 'none', headers: ['cookie'], ${HANDLED}`, 'which is a credential'],
  [`path: '/a', verify: 'none', headers: ['X-A'], ${HANDLED}`, 'headers lists "X-A"'],
  [`path: '/a', verify: 'none', once: 'id', ${HANDLED}`, 'once is a string'],
  [`path: '/a', verify: 'none', reply: 'late', ${HANDLED}`, 'reply is "late"'],
  [`path: '/a', verify: 'none', auth: 'user', ${HANDLED}`, 'has no option "auth"'],
  [`path: '/a', verify: signature.stripe({}), ${HANDLED}`, 'secret is undefined'],
  [
    `path: '/a', verify: signature.hmac({ ${HMAC}, toleranceSeconds: 9 }), ${HANDLED}`,
    'no time is signed',
  ],
])('an invalid hook is rejected with its line: %s', { tags: ['slow'] }, async (hook, message) => {
  const detail = await rejectionOf(declared(`  a: hook({ ${hook} }),`))
  expect(detail).toMatch(/^http\.ts:\d+/)
  expect(detail).toContain(message)
})

test('a message about a secret does not repeat the text, which may be the secret', async () => {
  const verify = `signature.stripe({ secret: 'whsec_abc' })`
  const detail = await rejectionOf(
    declared(`  a: hook({ path: '/', verify: ${verify}, ${HANDLED} })`),
  )
  expect(detail).toContain('secret is not a name')
  expect(detail.split('\n')[1]).not.toContain('whsec_abc')
})

test.each([
  ['internal.payments.absent', 'a Mutation or an Action of this Workspace at function'],
  ['internal.payments.read', 'a Mutation or an Action of this Workspace at function'],
  ['internal.payments.open', 'an internal Function'],
  ['internal.payments.own', 'a Function that needs no identity'],
  ['internal.payments.more', 'a Function with arguments { delivery: v.httpDelivery() }'],
])(
  'a handler that cannot handle deliveries is rejected: %s',
  { tags: ['slow'] },
  async (handler, rule) => {
    const hook = `  event: hook({ path: '/a', verify: 'none', handler: ${handler} }),`
    const detail = await rejectionOf(declared(hook))
    expect(detail).toMatch(/^http\.ts:4\n {2}event: expected /)
    expect(detail).toContain(rule)
  },
)

test('routes that share a request are rejected with the line of the second', async () => {
  const hook = (name: string, path: string) =>
    `  ${name}: hook({ path: '${path}', verify: 'none', ${HANDLED} }),`
  const detail = await rejectionOf(declared(`${hook('one', '/a/:x')}\n${hook('two', '/:y/b')}`))
  expect(detail).toMatch(/^http\.ts:5\n/)
  expect(detail).toContain('two: expected a path that no request shares with "one" (/a/:x) at path')
})

test('an Action that names the secret of a hook is rejected, also in a manifest', async () => {
  const verify = (secret: string) => `signature.stripe({ secret: '${secret}' })`
  const hook = (secret: string) =>
    declared(`  a: hook({ path: '/a', verify: ${verify(secret)}, ${HANDLED} }),`)
  const detail = await rejectionOf(hook('PAYMENTS'))
  expect(detail).toMatch(/^functions\/payments\.ts:\d+\n/)
  const rule = 'expected a secret that no hook verifies with, as "a" does at uses.secrets[0].'
  expect(detail).toContain(`payments.refund: ${rule}`)
  expect(detail).toContain('Leave it out: the server alone reads the secret')
  const description = await build(hook('OTHER'))
  const http = description.http!.map((route) => ({
    ...route,
    verify: { scheme: 'github', secret: 'PAYMENTS' } as const,
  }))
  const manifest = { ...description, http }
  const at = description.functions.findIndex(({ name }) => name === 'payments.refund')
  const violation = expect.objectContaining({ path: `$.functions[${at}].uses.secrets[0]` })
  expect(() => parseDescription(manifest as unknown as Json)).toThrow(violation)
  expect(codeChecks(manifest, manifest as unknown as Json)).toContainEqual(
    expect.objectContaining({ outcome: 'failed', detail: expect.stringContaining('no hook') }),
  )
})

test('a file that does not export routes is rejected', { tags: ['slow'] }, async () => {
  expect(await rejectionOf('export const x = 1\n')).toContain('export default httpRoutes({ ... })')
  expect(await rejectionOf('export default {}\n')).toContain('must be httpRoutes({ ... })')
  const plain = declared(`  a: { path: '/', verify: 'none', ${HANDLED} },`)
  expect(await rejectionOf(plain)).toContain('a is an object, neither a hook nor an endpoint')
})

const READ = `path: '/orders/:id', methods: ['GET'], handler: api.payments.order`

test('endpoints are part of the manifest, with their defaults', async () => {
  const routes = await routesOf(
    declared(`
  read: endpoint({ ${READ} }),
  write: endpoint({
    path: '/orders', methods: ['PUT', 'POST'], maximumBytes: 2_097_152,
    origins: ['https://b.example', 'http://localhost:5173'], handler: internal.payments.forward,
  }),
  open: endpoint({ path: '/open', methods: ['POST'], origins: '*', handler: api.payments.open }),`),
  )
  expect(routes).toEqual([
    {
      kind: 'endpoint',
      name: 'open',
      path: '/open',
      methods: ['POST'],
      maximumBytes: 262_144,
      origins: ['*'],
      function: 'payments.open',
    },
    {
      kind: 'endpoint',
      name: 'read',
      path: '/orders/:id',
      methods: ['GET'],
      maximumBytes: 262_144,
      origins: [],
      function: 'payments.order',
    },
    {
      kind: 'endpoint',
      name: 'write',
      path: '/orders',
      methods: ['POST', 'PUT'],
      maximumBytes: 2_097_152,
      origins: ['http://localhost:5173', 'https://b.example'],
      function: 'payments.forward',
    },
  ])
})

test.each([
  [`methods: ['GET'], handler: api.payments.order`, 'path is undefined'],
  [`path: '/orders', handler: api.payments.order`, 'has no methods. Write methods: ["GET"]'],
  [`${READ}, auth: 'none'`, 'has no option "auth". Leave it out: the declaration of the Function'],
  [`${READ}, arguments: {}`, 'has no option "arguments". Leave it out'],
  [`${READ}, returns: null`, 'has no option "returns". Leave it out'],
  [`${READ}, verify: 'none'`, 'has no option "verify"'],
  [`${READ}, maximumBytes: 2_097_153`, 'from 1 to 2097152'],
  [`${READ}, origins: 'https://a.example'`, 'origins is "https://a.example". Write a list'],
  [`${READ}, origins: ['*']`, 'origins lists "*"'],
  [`${READ}, origins: ['https://a.example/']`, 'origins lists "https://a.example/"'],
  [`${READ}, origins: ['https://A.example']`, 'origins lists "https://A.example"'],
  [`${READ}, origins: ['https://a.example:443']`, 'origins lists "https://a.example:443"'],
  [`${READ}, origins: ['null']`, 'origins lists "null"'],
  [`${READ}, origins: ['https://*.example']`, 'origins lists "https://*.example"'],
  [`${READ}, origins: ['http://a', 'http://a']`, 'origins lists "http://a" twice'],
  [`path: '/orders', methods: ['GET'], handler: () => null`, 'handler is a function'],
  [`path: '/orders', methods: ['OPTIONS'], handler: api.payments.order`, 'lists "OPTIONS"'],
])(
  'an invalid endpoint is rejected with its line: %s',
  { tags: ['slow'] },
  async (endpoint, message) => {
    const detail = await rejectionOf(declared(`  a: endpoint({ ${endpoint} }),`))
    expect(detail).toMatch(/^http\.ts:\d+/)
    expect(detail).toContain(message)
  },
)

test.each([
  [`path: '/a', methods: ['GET'], handler: api.payments.absent`, 'a Function of this Workspace'],
  [
    `path: '/a', methods: ['GET', 'POST'], handler: api.payments.open`,
    'other methods than GET, by which nothing changes: the handler is a mutation at methods',
  ],
  [
    `path: '/a/:order', methods: ['GET'], handler: api.payments.order`,
    'parameters that are arguments of payments.order, unlike :order at path',
  ],
])('an endpoint that does not fit its Function is rejected: %s', async (endpoint, rule) => {
  const detail = await rejectionOf(declared(`  a: endpoint({ ${endpoint} }),`))
  expect(detail).toMatch(/^http\.ts:4\n {2}a: expected /)
  expect(detail).toContain(rule)
})

test('a hook and an endpoint do not share a request', { tags: ['slow'] }, async () => {
  const hook = `  event: hook({ path: '/a/:x', verify: 'none', ${HANDLED} }),`
  const endpoint = `  call: endpoint({
    path: '/a/b', methods: ['POST'], handler: api.payments.open }),`
  expect(await routesOf(declared(`${hook}\n${endpoint}`))).toHaveLength(2)
  const same = endpoint.replace('/a/b', '/a/:delivery')
  const detail = await rejectionOf(declared(`${hook}\n${same}`))
  expect(detail).toContain('a path that no request shares with "call" (/a/:delivery) at path')
})
