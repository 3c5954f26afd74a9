/** Actions of the compiled server: what they can reach, what is rejected, and how they end. */
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Application, action, application, fields, string } from '../application.ts'
import { argv } from '../argv.ts'
import { productEnvironment } from '../harness.ts'

const ALLOWED = { SERVICE_ACTION_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128' }

let app: Application
let outside: Server
let port = 0
let seen: { url: string; body: string }[] = []
let cut = 0

beforeAll(async () => {
  outside = createServer(async (request, response) => {
    const { url = '' } = request
    let body = ''
    for await (const chunk of request) body += chunk
    seen.push({ url, body })
    response.on('close', () => {
      if (!response.writableFinished) cut += 1
    })
    if (url === '/slow') return
    if (url === '/away') response.writeHead(302, { location: `http://127.0.0.1:${port}/there` })
    response.end(JSON.stringify({ price: 42, received: body }))
  })
  await new Promise<void>((resolve) => outside.listen(0, 'localhost', resolve))
  port = (outside.address() as AddressInfo).port
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/outside.ts'), functions(port))
  }, ALLOWED)
})

afterAll(async () => {
  outside.closeAllConnections()
  outside.close()
  await app?.installation.dispose()
})

const functions = (port: number) => `
import { action, internalMutation, query, v } from 'svc'
import { api, internal } from '../_generated/api'

const uses = { network: ['localhost:${port}'] }
const url = 'http://localhost:${port}'

export const store = internalMutation({
  arguments: { name: v.string() },
  returns: v.id('channels'),
  handler: (ctx, { name }) => ctx.db.insert('channels', { name }),
})
export const count = query({
  clients: ['confidential'],
  returns: v.int64(),
  handler: async (ctx) => BigInt((await ctx.db.table('channels').scan().collect()).length),
})
export const order = action({
  clients: ['confidential'],
  uses,
  arguments: { name: v.string() },
  returns: v.object({ price: v.float64(), received: v.string(), channels: v.int64() }),
  handler: async (ctx, { name }) => {
    const before = Date.now()
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (Date.now() - before < 15) throw new Error('the clock stands still')
    const response = await fetch(url + '/order', { method: 'POST', body: name })
    const { price, received } = (await response.json()) as { price: number; received: string }
    await ctx.runMutation(internal.outside.store, { name })
    return { price, received, channels: await ctx.runQuery(api.outside.count) }
  },
})
const failing = (path: string, uses?: { network: string[] }) =>
  action({
    clients: ['confidential'],
    ...(uses && { uses }),
    returns: v.string(),
    handler: async () => {
      try {
        await fetch(path)
        return 'reached'
      } catch (error) {
        return (error as Error).message
      }
    },
  })
export const unnamed = failing(url + '/x')
export const away = failing(url + '/away', uses)
export const plain = failing('http://example.com/', { network: ['example.com'] })
export const here = failing(url + '/x', uses)
export const slow = failing(url + '/slow', uses)
`

const callAction = async (name: string) =>
  (await action(app, { function: `outside.${name}` })).body.result.value as string

describe('Actions of the compiled server', () => {
  test('an Action calls a server, a Mutation and a Query', async () => {
    const { status, headers, body } = await action(app, {
      function: 'outside.order',
      arguments: { name: string('tea') },
    })
    expect([status, body.error]).toEqual([200, undefined])
    expect(body.metadata).toEqual({ kind: 'action', schedulesCreated: '0' })
    expect(headers.get('x-service-invocation-id')).toMatch(/^ivc_/)
    expect(fields(body.result)).toEqual({
      price: { type: 'float64', value: '4045000000000000' },
      received: string('tea'),
      channels: { type: 'int64', value: '1' },
    })
    expect(seen).toEqual([{ url: '/order', body: 'tea' }])
  })

  test('svc call calls an Action', async () => {
    const called = await app.svc(
      argv`
        call outside.here --remote --root ${app.installation.productRoot}
        --url ${app.server.application!} --key-env KEY --target ${TARGET}
      `,
      { KEY: app.key },
    )
    expect(called).toMatchObject({ result: 'reached', metadata: { kind: 'action' } })
  })

  test('an Action reaches no host that it does not declare, not even by a redirect', async () => {
    seen = []
    expect(await callAction('unnamed')).toContain('is not in uses.network of this Action')
    expect(await callAction('away')).toContain('is not in uses.network of this Action')
    expect(seen.map(({ url }) => url)).toEqual(['/away'])
    expect(await callAction('plain')).toMatch(/http is for networks of|has no address/)
  })

  test('an Action ends when its caller disconnects, and so does its request', async () => {
    cut = 0
    seen = []
    const abort = new AbortController()
    const calling = fetch(`${app.server.application}/v1/action`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': app.key },
      body: JSON.stringify({
        version: 1,
        target: TARGET,
        function: 'outside.slow',
        arguments: { type: 'object', value: [] },
      }),
      signal: abort.signal,
    })
    await expect.poll(() => seen.length).toBe(1)
    abort.abort()
    await expect(calling).rejects.toThrow()
    await expect.poll(() => cut).toBe(1)
  })

  test('an Action reaches no private address unless the operator lists it', async () => {
    await app.server.stop()
    await app.server.ended
    app.server = await app.installation.start(productEnvironment(app.installation))
    seen = []
    expect(await callAction('here')).toContain(
      'the operator must list it in SERVICE_ACTION_ALLOWED',
    )
    expect(seen).toEqual([])
  })
})

const TARGET = 'channel:production'
