/**
 * Releases, Channels and keys of the compiled executables, as an operator uses them.
 *
 * @module-tag slow
 */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Application,
  action,
  application,
  createKey,
  type Json,
  mutation,
  operationId,
  query,
  send,
  UNTYPED,
} from '../application.ts'
import { argv } from '../argv.ts'

/** Returns the source of Functions that return the name of their Release, also by nested calls. */
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

const PROMOTIONS = process.env.SVC_TEST_LONG === '1' ? 50 : 12

let app: Application
let first: string
let second: string

beforeAll(async () => {
  app = await application((workspace) => write(workspace, 'first'))
  first = app.releaseId
  write(app.installation.workspace, 'second')
  second = (await app.svc(argv`release ${remote()} ${UNTYPED}`)).releaseId
})

afterAll(async () => {
  await app?.installation.dispose()
})

function write(workspace: string, name: string): void {
  writeFileSync(join(workspace, 'functions/release.ts'), source(name))
}

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const promote = (releaseId: string) =>
  app.svc(argv`promote ${remote()} --channel production --release ${releaseId}`)

/** Promotes over HTTP, without the time to start a command. */
async function promoteDirectly(releaseId: string): Promise<void> {
  const read = (path: string) =>
    JSON.parse(readFileSync(join(app.installation.directory, path), 'utf8'))
  const { projectId, environmentId } = read('product/service.json')
  const path = `/v1/projects/${projectId}/environments/${environmentId}/channels/production`
  const token: string = read('config/credentials-v1.json').accessToken
  const reply = await send(app.server.management, 'PUT', path, { token, body: { releaseId } })
  expect(reply.status).toBe(200)
}
const rollback = (expected: string, to: string) =>
  app.installation.svc(
    argv`rollback ${remote()} --channel production --expected ${expected} --to ${to} --json`,
  )
const serves = async (key = app.key) => query(app, { function: 'release.name', key })

/** Creates a key whose rate limit is higher than the default. */
async function fastKey(): Promise<string> {
  return (await createKey(app, { scopes: 'action,query', rateLimit: 1_000_000 })).key
}

async function release(name: string): Promise<string> {
  write(app.installation.workspace, name)
  return (await app.svc(argv`release ${remote()} ${UNTYPED}`)).releaseId
}

describe('Channels', () => {
  test('a Channel is promoted under load without a failed call or a mix of Releases', async () => {
    // Promotions between two Releases during Queries, and during Actions that call Queries.
    const names: Record<string, string> = { [first]: 'first', [second]: 'second' }
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
      for (let i = 0; i < PROMOTIONS; i++) {
        const release = i % 2 === 0 ? second : first
        await promoteDirectly(release)
        const served = seen.get(names[release]!) ?? 0
        const options = { timeout: 60_000, interval: 5 }
        await expect.poll(() => seen.get(names[release]!) ?? 0, options).toBeGreaterThan(served + 5)
      }
    })().finally(() => {
      promoting = false
    })
    await Promise.all([promotions, ...callers])
    expect((await serves()).body.releaseId).toBe(first)
  })

  test('a rollback binds a Release of the history if its expectation is right', async () => {
    await promote(second)
    const done = await rollback(second, first)
    expect(JSON.parse(done.stdout)).toMatchObject({ channel: 'production', releaseId: first })
    // The Channel serves the Release before until the other one is warm.
    const served = { releaseId: first, result: { value: 'first' } }
    await expect.poll(async () => (await serves()).body).toMatchObject(served)
    const again = await rollback(second, first)
    expect([again.status, JSON.parse(again.stdout).error.code]).toEqual([4, 'PRODUCT_CAS_CONFLICT'])
    const unknown = await rollback(first, await release('never-bound'))
    expect([unknown.status, JSON.parse(unknown.stdout).error.code]).toEqual([
      4,
      'PRODUCT_STATE_CONFLICT',
    ])
    const { channels } = await app.svc(argv`status ${remote()}`)
    expect(channels[0].history.slice(0, 2)).toEqual([second, first])
  })
})

describe('Releases', () => {
  const retire = (releaseId: string) =>
    app.installation.svc(argv`releases retire ${remote()} --release ${releaseId} --json`)

  test('only an unused Release can be retired, and it is then rejected everywhere', async () => {
    const used = await retire(first)
    expect([used.status, JSON.parse(used.stdout).error.code]).toEqual([4, 'PRODUCT_STATE_CONFLICT'])
    const pinned = { function: 'release.name', target: `release:${second}` }
    expect((await query(app, pinned)).status).toBe(200)
    for (let i = 0; i < 2; i++) expect((await retire(second)).status).toBe(0)
    const gone = await query(app, pinned)
    expect([gone.status, gone.body.error.code]).toEqual([410, 'RELEASE_RETIRED'])
    expect(JSON.parse((await rollback(first, second)).stdout).error.code).toBe(
      'PRODUCT_RELEASE_RETIRED',
    )
    const { releases } = await app.svc(argv`releases list ${remote()}`)
    const states = Object.fromEntries(releases.map((item: Json) => [item.releaseId, item.state]))
    expect(states).toMatchObject({ [first]: 'validated', [second]: 'retired' })
    await app.restart('kill')
    expect((await query(app, pinned)).status).toBe(410)
    expect((await serves()).body.releaseId).toBe(first)
  })

  test('a retired Release loses the indexes that no other Release declares', async () => {
    const path = join(app.installation.workspace, 'schema.ts')
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

  test('a Release can be created again from the same source after its retirement', async () => {
    const original = await release('again')
    expect(await release('again')).toBe(original)
    expect((await retire(original)).status).toBe(0)
    const recreated = await release('again')
    expect(recreated).not.toBe(original)
    await promote(recreated)
    expect((await serves()).body).toMatchObject({ result: { value: 'again' } })
    await promote(first)
  })
})

test('documents that are stored after a validation decide about promotions', async () => {
  const schemaFile = join(app.installation.workspace, 'schema.ts')
  const schema = readFileSync(schemaFile, 'utf8')
  const releaseOf = async (tables: string): Promise<string> => {
    const more = schema.replace('defineSchema({', `$&\n  ${tables},`)
    expect(more).not.toBe(schema)
    writeFileSync(schemaFile, more)
    return (await app.svc(argv`release ${remote()} ${UNTYPED}`)).releaseId
  }
  writeFileSync(join(app.installation.workspace, 'functions/notes.ts'), NOTES)
  const wide = await releaseOf('notes: table({ text: v.string() })')
  await promote(wide)
  const narrow = await releaseOf('notes: table({ text: v.string({ maximumLength: 4 }) })')
  const added = { function: 'notes.add', operationId: operationId() }
  expect((await mutation(app, added)).status).toBe(200)
  const rejected = await app.installation.svc(
    argv`promote ${remote()} --channel production --release ${narrow} --json`,
  )
  expect([rejected.status, JSON.parse(rejected.stdout).error]).toMatchObject([
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
  rmSync(join(app.installation.workspace, 'functions/notes.ts'))
  await promote(first)
})

describe('Application Keys', () => {
  test('an Application Key rotates with an overlap, is revoked at once, then deleted', async () => {
    const client = argv`${remote()} --client ${app.clientId}`
    const list = async () => (await app.svc(argv`credentials list ${client}`)).credentials
    const [{ credentialId }] = await list()
    const at = argv`${client} --credential ${credentialId}`
    const file = join(app.installation.directory, 'next.key')
    const rotated = await app.svc(argv`credentials rotate ${at} --key-out ${file}`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const next = readFileSync(file, 'utf8').trim()
    expect([(await serves()).status, (await serves(next)).status]).toEqual([200, 200])
    const early = await app.installation.svc(argv`credentials delete ${at} --json`)
    expect([early.status, JSON.parse(early.stdout).error.code]).toEqual([
      4,
      'PRODUCT_STATE_CONFLICT',
    ])
    await app.svc(argv`credentials revoke ${at}`)
    const rejected = await serves()
    expect([rejected.status, rejected.body.error.code]).toEqual([401, 'APPLICATION_KEY_INVALID'])
    expect((await serves(next)).status).toBe(200)
    await app.svc(argv`credentials delete ${at}`)
    await app.restart('kill')
    expect([(await serves()).status, (await serves(next)).status]).toEqual([401, 200])
    expect(await list()).toMatchObject([
      { credentialId, state: 'deleted' },
      { credentialId: rotated.credential.credentialId, state: 'active', replaces: credentialId },
    ])
  })

  test('a public Application Key can be revealed again, and a secret one cannot', async () => {
    const made = await app.svc(argv`clients create ${remote()} --name web --kind public`)
    const client = argv`${remote()} --client ${made.client.clientId}`
    const { key, credential } = await app.svc(argv`credentials create ${client} --name one`)
    const at = argv`${client} --credential ${credential.credentialId}`
    expect((await app.svc(argv`credentials reveal ${at}`)).key).toBe(key)
    const human = await app.installation.svc(argv`credentials reveal ${at}`)
    expect(human.stdout).toBe(`${key}\n`)
    const [secret] = (await app.svc(argv`credentials list ${remote()} --client ${app.clientId}`))
      .credentials
    const rejected = await app.installation.svc(
      argv`
        credentials reveal ${remote()} --client ${app.clientId}
        --credential ${secret.credentialId} --json
      `,
    )
    expect([rejected.status, JSON.parse(rejected.stdout).error.code]).toEqual([
      8,
      'PRODUCT_INVALID',
    ])
  })
})
