/** Endpoints of the compiled server, as programs and browsers call them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { realSystem } from '../../src/system/system.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'

const FUNCTIONS = `
import { internalAction, internalMutation, internalQuery, v } from 'svc'
export const add = internalMutation({
  arguments: { name: v.string() },
  returns: v.int64(),
  handler: async (ctx, { name }) => {
    await ctx.db.insert('channels', { name })
    return BigInt((await ctx.db.table('channels').scan().collect()).length)
  },
})
export const text = internalQuery({
  arguments: { count: v.int64() },
  returns: v.httpResponse(),
  handler: (ctx, { count }) => ({ status: 203, body: 'é'.repeat(Number(count)) }),
})
export const act = internalAction({
  arguments: { name: v.string() },
  returns: v.httpResponse(),
  handler: (ctx, { name }) => ({ body: new TextEncoder().encode(name) }),
})
`
const HTTP = `
import { endpoint, httpRoutes } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
  add: endpoint({
    path: '/channels', methods: ['POST'], origins: ['https://page.example'],
    handler: internal.endpoints.add,
  }),
  text: endpoint({ path: '/text/:count', methods: ['GET'], handler: internal.endpoints.text }),
  act: endpoint({ path: '/act', methods: ['PUT'], handler: internal.endpoints.act }),
})
`

let app: Application
let base = ''
beforeAll(async () => {
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/endpoints.ts'), FUNCTIONS)
    writeFileSync(join(workspace, 'http.ts'), HTTP)
  })
  const remote = argv`--remote --root ${app.installation.productRoot}`
  const mounted = await app.svc(argv`http mount main --target channel:production ${remote}`)
  base = `${app.server.application}${mounted.path}`
})
afterAll(() => app?.installation.dispose())

test('GET and HEAD answer what the Query decides, short and long', async () => {
  for (const count of [3, 100_000]) {
    const response = await fetch(`${base}/text/${count}`)
    expect([response.status, (await response.text()).length]).toEqual([203, count])
    const head = await fetch(`${base}/text/${count}`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([203, ''])
    expect(head.headers.get('content-length')).toBe(String(2 * count))
  }
})

test('a repeat of a Mutation runs once', async () => {
  const add = () =>
    fetch(`${base}/channels`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': operationId },
      body: '{"name":"one"}',
    })
  const operationId = realSystem().ids.make('opn')
  const first = await (await add()).json()
  expect(await (await add()).json()).toBe(first)
})

test('an Action answers bytes', async () => {
  const response = await fetch(`${base}/act?name=%C3%A9`, { method: 'PUT' })
  expect(response.headers.get('content-type')).toBe('application/octet-stream')
  expect([...(await response.bytes())]).toEqual([0xc3, 0xa9])
})

test('a page of a declared origin gets a preflight, another one none', async () => {
  const preflight = (origin: string) =>
    fetch(`${base}/channels`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
  const allowed = await preflight('https://page.example')
  expect(allowed.headers.get('access-control-allow-origin')).toBe('https://page.example')
  expect(allowed.status).toBe(204)
  const denied = await preflight('https://other.example')
  expect(denied.headers.get('access-control-allow-origin')).toBeNull()
  expect(denied.status).toBe(403)
})

test('an unknown path is 404 without a body', async () => {
  const response = await fetch(`${base}/none`)
  expect([response.status, await response.text()]).toEqual([404, ''])
})
