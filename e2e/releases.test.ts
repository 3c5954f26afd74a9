/** Releases, Channels and keys of the compiled executables, as their operator handles them. */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Application,
  action,
  application,
  type Json,
  mutation,
  operationId,
  query,
  send,
} from './application.ts'

/** Says which Release it is of, by itself and through nested calls. */
const source = (name: string) => `
import { action, internalQuery, query, v } from 'svc'
import { internal } from '../_generated/api'

export const name = query({
  clients: ['confidential'],
  returns: v.string(),
  handler: () => '${name}',
})
export const inner = internalQuery({ returns: v.string(), handler: () => '${name}' })
export const whole = action({
  clients: ['confidential'],
  returns: v.string(),
  handler: async (ctx) => {
    const before = await ctx.runQuery(internal.release.inner, {})
    await new Promise((resolve) => setTimeout(resolve, 5))
    return [before, '${name}', await ctx.runQuery(internal.release.inner, {})].join()
  },
})
`

const NOTES = `
import { mutation, v } from 'svc'

export const add = mutation({
  clients: ['confidential'],
  returns: v.null(),
  handler: async (ctx) => {
    await ctx.db.insert('notes', { text: 'a long text' })
    return null
  },
})
`

let app: Application
let a: string
let b: string

beforeAll(async () => {
  app = await application((workspace) => write(workspace, 'a'))
  a = app.releaseId
  write(app.of.workspace, 'b')
  b = (await app.svc(['release', ...remote()])).releaseId
})

afterAll(async () => {
  await app?.of.dispose()
})

function write(workspace: string, name: string): void {
  writeFileSync(join(workspace, 'functions/release.ts'), source(name))
}

const remote = () => ['--remote', '--root', app.of.productRoot]
const promote = (releaseId: string) =>
  app.svc(['promote', ...remote(), '--channel', 'production', '--release', releaseId])

/** Without the time that a command takes to start. */
async function promoteDirectly(releaseId: string): Promise<void> {
  const read = (path: string) => JSON.parse(readFileSync(join(app.of.directory, path), 'utf8'))
  const { projectId, environmentId } = read('product/service.json')
  const path = `/v1/projects/${projectId}/environments/${environmentId}/channels/production`
  const token: string = read('config/credentials-v1.json').accessToken
  const reply = await send(app.server.management, 'PUT', path, { token, body: { releaseId } })
  expect(reply.status).toBe(200)
}
const rollback = (expected: string, to: string) =>
  app.of.svc([
    ...['rollback', ...remote(), '--channel', 'production'],
    ...['--expected', expected, '--to', to, '--json'],
  ])
const serves = async (key = app.key) => query(app, { function: 'release.name', key })

/** A key that the default rate does not hold back. */
async function fastKey(): Promise<string> {
  const named = ['--name', 'load', '--scopes', 'action,query']
  const kind = ['--kind', 'confidential']
  const { client } = await app.svc(['clients', 'create', ...remote(), ...named, ...kind])
  const of = ['--client', client.clientId, '--rate-limit', '1000000']
  return (await app.svc(['credentials', 'create', ...remote(), ...named, ...of])).key
}

async function release(name: string): Promise<string> {
  write(app.of.workspace, name)
  return (await app.svc(['release', ...remote()])).releaseId
}

describe('a Channel', () => {
  test('serves what it is promoted to, under calls that never fail or mix Releases', async () => {
    // Goal: a promotion is seen whole and costs nobody a call. Method: 50 promotions between two
    // Releases while callers ask, with Queries and with Actions that call Queries.
    const names: Record<string, string> = { [a]: 'a', [b]: 'b' }
    const seen = new Map<string, number>()
    const key = await fastKey()
    let promoting = true
    const ask = async (call: () => Promise<{ status: number; body: Json }>, times: number) => {
      while (promoting) {
        const { status, body } = await call()
        expect(status, JSON.stringify(body)).toBe(200)
        const name = names[body.releaseId]!
        expect(body.result).toEqual({ type: 'string', value: Array(times).fill(name).join() })
        seen.set(name, (seen.get(name) ?? 0) + 1)
      }
    }
    const callers = [
      ...Array.from({ length: 8 }, () => ask(() => serves(key), 1)),
      ...Array.from({ length: 4 }, () =>
        ask(() => action(app, { function: 'release.whole', key }), 3),
      ),
    ]
    const promotions = (async () => {
      for (let i = 0; i < 50; i++) {
        await promoteDirectly(i % 2 === 0 ? b : a)
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    })().finally(() => {
      promoting = false
    })
    await Promise.all([promotions, ...callers])
    expect(Math.min(seen.get('a') ?? 0, seen.get('b') ?? 0)).toBeGreaterThan(50)
    expect((await serves()).body.releaseId).toBe(a)
  })

  test('rolls back to what is in its history, under the exact current Release', async () => {
    await promote(b)
    const done = await rollback(b, a)
    expect(JSON.parse(done.stdout)).toMatchObject({ channel: 'production', releaseId: a })
    expect((await serves()).body).toMatchObject({ releaseId: a, result: { value: 'a' } })
    const again = await rollback(b, a)
    expect([again.status, JSON.parse(again.stdout).error.code]).toEqual([4, 'PRODUCT_CAS_CONFLICT'])
    const unknown = await rollback(a, await release('never-bound'))
    expect([unknown.status, JSON.parse(unknown.stdout).error.code]).toEqual([
      4,
      'PRODUCT_STATE_CONFLICT',
    ])
    const { channels } = await app.svc(['status', ...remote()])
    expect(channels[0].history.slice(0, 2)).toEqual([b, a])
  })
})

describe('a Release', () => {
  const retire = (releaseId: string) =>
    app.of.svc(['releases', 'retire', ...remote(), '--release', releaseId, '--json'])

  test('is retired only where nothing uses it, and is then gone for everybody', async () => {
    const used = await retire(a)
    expect([used.status, JSON.parse(used.stdout).error.code]).toEqual([4, 'PRODUCT_STATE_CONFLICT'])
    const pinned = { function: 'release.name', target: `release:${b}` }
    expect((await query(app, pinned)).status).toBe(200)
    for (let i = 0; i < 2; i++) expect((await retire(b)).status).toBe(0)
    const gone = await query(app, pinned)
    expect([gone.status, gone.body.error.code]).toEqual([410, 'RELEASE_RETIRED'])
    expect(JSON.parse((await rollback(a, b)).stdout).error.code).toBe('PRODUCT_RELEASE_RETIRED')
    const { releases } = await app.svc(['releases', 'list', ...remote()])
    const states = Object.fromEntries(releases.map((item: Json) => [item.releaseId, item.state]))
    expect(states).toMatchObject({ [a]: 'validated', [b]: 'retired' })
    await app.restart('kill')
    expect((await query(app, pinned)).status).toBe(410)
    expect((await serves()).body.releaseId).toBe(a)
  })

  test('takes the indexes with it that no other declares', async () => {
    const path = join(app.of.workspace, 'schema.ts')
    const schema = readFileSync(path, 'utf8')
    const more = schema.replace(".index('byChannel'", ".index('byLikes', ['likes'])$&")
    expect(more).not.toBe(schema)
    writeFileSync(path, more)
    const releaseId = await release('indexed')
    writeFileSync(path, schema)
    expect((await retire(releaseId)).status).toBe(0)
    const dropped = () =>
      app.server.lines.filter((line) => line.includes('product.indexes_dropped'))
    await expect.poll(dropped).toHaveLength(1)
    expect(JSON.parse(dropped()[0]!)).toMatchObject({ dropped: 1 })
    expect((await serves()).status).toBe(200)
  })

  test('of the same source is made again after its retirement', async () => {
    const first = await release('again')
    expect(await release('again')).toBe(first)
    expect((await retire(first)).status).toBe(0)
    const second = await release('again')
    expect(second).not.toBe(first)
    await promote(second)
    expect((await serves()).body).toMatchObject({ result: { value: 'again' } })
    await promote(a)
  })
})

test('what is stored after a validation decides over promotions and rollbacks', async () => {
  const schemaFile = join(app.of.workspace, 'schema.ts')
  const schema = readFileSync(schemaFile, 'utf8')
  const releaseOf = async (tables: string): Promise<string> => {
    const more = schema.replace('defineSchema({', `$&\n  ${tables},`)
    expect(more).not.toBe(schema)
    writeFileSync(schemaFile, more)
    return (await app.svc(['release', ...remote()])).releaseId
  }
  writeFileSync(join(app.of.workspace, 'functions/notes.ts'), NOTES)
  const wide = await releaseOf('notes: table({ text: v.string() })')
  await promote(wide)
  const narrow = await releaseOf('notes: table({ text: v.string({ maximumLength: 4 }) })')
  const added = { function: 'notes.add', operationId: operationId() }
  expect((await mutation(app, added)).status).toBe(200)
  const refused = await app.of.svc([
    ...['promote', ...remote(), '--channel', 'production', '--release', narrow, '--json'],
  ])
  expect([refused.status, JSON.parse(refused.stdout).error]).toMatchObject([
    8,
    {
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [
        {
          path: 'checks.documents:notes',
          rule: expect.stringMatching(/^1 stored documents do not fit the validators: notes_/),
        },
      ],
    },
  ])
  expect((await serves()).body.releaseId).toBe(wide)
  const wider = await releaseOf(
    'notes: table({ text: v.string(), more: v.optional(v.string()) }),\n  extras: table({})',
  )
  await promote(wider)
  expect(JSON.parse((await rollback(wider, wide)).stdout)).toMatchObject({ releaseId: wide })
  writeFileSync(schemaFile, schema)
  rmSync(join(app.of.workspace, 'functions/notes.ts'))
  await promote(a)
})

describe('an Application Key', () => {
  test('is rotated with an overlap, revoked at once, deleted last', async () => {
    const client = [...remote(), '--client', app.clientId]
    const list = async () => (await app.svc(['credentials', 'list', ...client])).credentials
    const [{ credentialId }] = await list()
    const at = [...client, '--credential', credentialId]
    const file = join(app.of.directory, 'next.key')
    const rotated = await app.svc(['credentials', 'rotate', ...at, '--key-out', file])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const next = readFileSync(file, 'utf8').trim()
    expect([(await serves()).status, (await serves(next)).status]).toEqual([200, 200])
    const early = await app.of.svc(['credentials', 'delete', ...at, '--json'])
    expect([early.status, JSON.parse(early.stdout).error.code]).toEqual([
      4,
      'PRODUCT_STATE_CONFLICT',
    ])
    await app.svc(['credentials', 'revoke', ...at])
    const refused = await serves()
    expect([refused.status, refused.body.error.code]).toEqual([401, 'APPLICATION_KEY_INVALID'])
    expect((await serves(next)).status).toBe(200)
    await app.svc(['credentials', 'delete', ...at])
    await app.restart('kill')
    expect([(await serves()).status, (await serves(next)).status]).toEqual([401, 200])
    expect(await list()).toMatchObject([
      { credentialId, state: 'deleted' },
      { credentialId: rotated.credential.credentialId, state: 'active', replaces: credentialId },
    ])
  })

  test('of a public client is revealed again, a secret one is not', async () => {
    const made = await app.svc([
      ...['clients', 'create', ...remote(), '--name', 'web', '--kind', 'public'],
    ])
    const client = [...remote(), '--client', made.client.clientId]
    const { key, credential } = await app.svc([
      ...['credentials', 'create', ...client, '--name', 'one'],
    ])
    const at = [...client, '--credential', credential.credentialId]
    expect((await app.svc(['credentials', 'reveal', ...at])).key).toBe(key)
    const human = await app.of.svc(['credentials', 'reveal', ...at])
    expect(human.stdout).toBe(`${key}\n`)
    const [secret] = (await app.svc(['credentials', 'list', ...remote(), '--client', app.clientId]))
      .credentials
    const refused = await app.of.svc([
      ...['credentials', 'reveal', ...remote(), '--client', app.clientId],
      ...['--credential', secret.credentialId, '--json'],
    ])
    expect([refused.status, JSON.parse(refused.stdout).error.code]).toEqual([8, 'PRODUCT_INVALID'])
  })
})
