/**
 * A schema grows under load: a field, an index, a member of an open union and a nested field. Both
 * Releases serve, write and are bound in turn, and no call fails and no field is lost.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import {
  type Application,
  application,
  fields,
  id,
  type Json,
  mutation,
  query,
  type Reply,
  string,
  UNTYPED,
} from '../application.ts'
import { argv } from '../argv.ts'

const FIRST_SCHEMA = `
import { defineSchema, table, v } from 'svc'

export default defineSchema({
  users: table({
    name: v.string(),
    status: v.open(v.union(v.literal('new'), v.literal('active'))),
    address: v.object({ city: v.string() }),
  }),
})
`

const SECOND_SCHEMA = `
import { defineSchema, table, v } from 'svc'

export default defineSchema({
  users: table({
    name: v.string(),
    nick: v.optional(v.string()),
    status: v.open(v.union(v.literal('new'), v.literal('active'), v.literal('banned'))),
    address: v.object({ city: v.string(), zip: v.optional(v.string()) }),
  }).index('byNick', ['nick']),
})
`

/** The Functions of both Releases. */
const FIRST_FUNCTIONS = `
import { mutation, query, v } from 'svc'
import schema from '../schema'

const clients = ['confidential'] as const
const user = v.id('users')

export const get = query({
  clients,
  arguments: { user },
  returns: v.nullable(schema.document('users')),
  handler: (ctx, { user }) => ctx.db.get(user),
})
export const add = mutation({
  clients,
  arguments: { name: v.string(), city: v.string() },
  returns: user,
  handler: (ctx, { name, city }) =>
    ctx.db.insert('users', { name, status: 'new', address: { city } }),
})
export const rename = mutation({
  clients,
  arguments: { user, name: v.string() },
  returns: v.null(),
  handler: async (ctx, { user, name }) => {
    await ctx.db.patch(user, { name })
    return null
  },
})
export const move = mutation({
  clients,
  arguments: { user, city: v.string() },
  returns: v.null(),
  handler: async (ctx, { user, city }) => {
    const { address } = (await ctx.db.get(user))!
    await ctx.db.patch(user, { address: { ...address, city } })
    return null
  },
})
export const rewrite = mutation({
  clients,
  arguments: { user, name: v.string() },
  returns: v.null(),
  handler: async (ctx, { user, name }) => {
    const { _id, _createdAt, _revision, ...fields } = (await ctx.db.get(user))!
    await ctx.db.replace(user, { ...fields, name })
    return null
  },
})
`

const SECOND_FUNCTIONS = `${FIRST_FUNCTIONS}
export const extend = mutation({
  clients,
  arguments: { user, nick: v.string(), zip: v.string() },
  returns: v.null(),
  handler: async (ctx, { user, nick, zip }) => {
    const { address } = (await ctx.db.get(user))!
    await ctx.db.patch(user, { nick, status: 'banned', address: { ...address, zip } })
    return null
  },
})
export const byNick = query({
  clients,
  arguments: { nick: v.string() },
  returns: v.array(user),
  handler: async (ctx, { nick }) => {
    const found = await ctx.db.table('users').index('byNick', (q) => q.eq('nick', nick)).take(10)
    return found.map(({ _id }) => _id)
  },
})
`

interface User {
  name: string
  city: string
  nick?: string
  zip?: string
  status: 'new' | 'banned'
}

const WRITERS = 4
const WRITES = 30

const LONG = process.env.SVC_TEST_LONG === '1'
/** Schemas grow over both stores in schema-evolution.test.ts of the engine. */
const STORES = LONG ? ['SQLite', 'PostgreSQL'] : ['PostgreSQL']

describe.each(STORES)('a schema that grows over %s', (store) => {
  let app: Application
  let documents: TestDatabase | null = null
  let first: string
  let second: string
  /** The fields that the writes so far have left, by document ID. */
  const users = new Map<string, User>()
  let count = 0

  beforeAll(async () => {
    documents = store === 'SQLite' ? null : await freshDatabase()
    const url = documents?.url
    const environment = url === undefined ? {} : { SERVICE_PLATFORM_DATABASE_URL: url }
    app = await application((workspace) => {
      rmSync(join(workspace, 'functions'), { recursive: true })
      mkdirSync(join(workspace, 'functions'))
      write(workspace, FIRST_SCHEMA, FIRST_FUNCTIONS)
    }, environment)
    first = app.releaseId
  })

  afterAll(async () => {
    await app?.installation.dispose()
    await documents?.drop()
  })

  function write(workspace: string, schema: string, functions: string): void {
    writeFileSync(join(workspace, 'schema.ts'), schema)
    writeFileSync(join(workspace, 'functions/users.ts'), functions)
  }

  const remote = () => argv`--remote --root ${app.installation.productRoot}`
  const promote = (releaseId: string) =>
    app.svc(argv`promote ${remote()} --channel production --release ${releaseId}`)

  async function serve(releases: string): Promise<void> {
    const { desired } = await app.svc(argv`serve-policy set ${remote()} --releases ${releases}`)
    const observed = async () =>
      (await app.svc(argv`serve-policy get ${remote()}`)).observed.revision
    const options = { timeout: 60_000, interval: 100 }
    await expect.poll(observed, options).toBe(desired.revision)
  }

  /** Makes a call that must succeed. */
  async function done(call: Promise<Reply>): Promise<Json> {
    const { status, body } = await call
    expect(status, JSON.stringify(body)).toBe(200)
    return body
  }

  async function add(target: string, headers: Record<string, string> = {}): Promise<string> {
    const name = `name ${++count}`
    const call = { function: 'users.add', target, headers }
    const { result } = await done(
      mutation(app, { ...call, arguments: { name: string(name), city: string('Bern') } }),
    )
    users.set(result.value, { name, city: 'Bern', status: 'new' })
    return result.value
  }

  /** Changes the user with each Function that both Releases have. */
  async function change(user: string, target: string, headers: Record<string, string> = {}) {
    const call = { target, headers }
    const known = users.get(user)!
    for (const verb of ['rename', 'rewrite']) {
      const name = `name ${++count}`
      const given = { user: id(user), name: string(name) }
      await done(mutation(app, { ...call, function: `users.${verb}`, arguments: given }))
      known.name = name
    }
    const city = `city ${++count}`
    const given = { user: id(user), city: string(city) }
    await done(mutation(app, { ...call, function: 'users.move', arguments: given }))
    known.city = city
  }

  async function extend(user: string, target: string): Promise<void> {
    const nick = `nick ${++count}`
    const zip = `zip ${count}`
    const given = { user: id(user), nick: string(nick), zip: string(zip) }
    await done(mutation(app, { function: 'users.extend', target, arguments: given }))
    Object.assign(users.get(user)!, { nick, zip, status: 'banned' })
  }

  /** Reads every user by both Releases: each sees all that it declares, and nothing else. */
  async function checkAll(): Promise<void> {
    for (const [user, known] of users) {
      for (const releaseId of [first, second]) {
        const call = { function: 'users.get', target: `release:${releaseId}` }
        const { result } = await done(query(app, { ...call, arguments: { user: id(user) } }))
        const { _id, _createdAt, _revision, ...read } = plain(result) as Record<string, unknown>
        expect(read).toEqual(releaseId === first ? seenByFirst(known) : seenBySecond(known))
      }
      if (known.nick === undefined) continue
      const call = { function: 'users.byNick', target: `release:${second}` }
      const { result } = await done(
        query(app, { ...call, arguments: { nick: string(known.nick) } }),
      )
      expect(plain(result)).toEqual([user])
    }
  }

  test('both Releases serve, write and are bound in turn without a lost field', async () => {
    const early = [await add('channel:production'), await add('channel:production')]
    await serve(`${first}`)
    write(app.installation.workspace, SECOND_SCHEMA, SECOND_FUNCTIONS)
    second = (await app.svc(argv`release ${remote()} ${UNTYPED}`)).releaseId

    // A canary of 5 %: each of many callers writes through the Release that the policy gives it.
    await serve(`${first}=9500,${second}=500`)
    const served = new Set<string>()
    const writer = async (): Promise<void> => {
      for (let i = 0; i < WRITES; i++) {
        const headers = { 'x-service-affinity': randomBytes(8).toString('hex') }
        const user = await add('environment:default', headers)
        await change(user, 'environment:default', headers)
        const call = { function: 'users.get', target: 'environment:default', headers }
        const { releaseId } = await done(query(app, { ...call, arguments: { user: id(user) } }))
        served.add(releaseId)
      }
    }
    await Promise.all(Array.from({ length: WRITERS }, writer))
    expect(served).toContain(first)
    for (const user of early) {
      await extend(user, `release:${second}`)
      await change(user, `release:${first}`)
    }
    await checkAll()

    await promote(second)
    await serve(second)
    for (const user of early) await extend(user, 'channel:production')
    const late = await add('channel:production')
    await extend(late, 'channel:production')
    await checkAll()

    const back = argv`rollback ${remote()} --channel production --expected ${second} --to ${first}`
    await app.svc(back)
    await serve(first)
    for (const user of [...early, late]) await change(user, 'channel:production')
    await add('channel:production')
    await checkAll()

    await promote(second)
    await serve(second)
    for (const user of [...early, late]) await change(user, 'channel:production')
    await app.restart('kill')
    await checkAll()
  })
})

function seenByFirst({ name, city, status }: User): unknown {
  return { name, status: status === 'new' ? 'new' : { unknown: true }, address: { city } }
}

function seenBySecond({ name, city, status, nick, zip }: User): unknown {
  const address = zip === undefined ? { city } : { city, zip }
  return { name, status, address, ...(nick !== undefined && { nick }) }
}

/** Returns a tagged value as plain JSON. */
function plain(tagged: Json): unknown {
  if (tagged.type === 'array') return tagged.value.map(plain)
  if (tagged.type !== 'object') return tagged.value
  const entries = Object.entries(fields(tagged))
  return Object.fromEntries(entries.map(([key, value]) => [key, plain(value)]))
}
