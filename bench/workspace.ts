/** Writes the Workspace that the bench measures. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MARKS, versions } from './promotions/versions.ts'

const SCHEMA = `import { defineSchema, table, v } from 'svc'

const item = { number: v.int64(), title: v.string(), body: v.string() }

export default defineSchema({
  items: table(item).index('byNumber', ['number']),
  live: table(item).index('byNumber', ['number']),
  few: table(item).index('byNumber', ['number']),
  many: table(item).index('byNumber', ['number']),
  accounts: table({ balance: v.int64() }),
  done: table({ number: v.int64() }).index('byNumber', ['number']),
  entries: table({ list: v.int64(), ...item }).index('byList', ['list', 'number']),
  ${MARKS}
})
`

/** Functions of the table of items alone. */
const ITEMS = `
/** Does what get does, and prints lines. */
export const getAndPrint = query({
  clients,
  arguments: { number, nonce: v.int64(), lines: v.int64() },
  returns: v.nullable(schema.document('items')),
  handler: (ctx, { number, lines }) => {
    for (let line = 1n; line <= lines; line++) console.log('line', line, 'of item', number)
    return ctx.db.table('items').index('byNumber', (q) => q.eq('number', number)).first()
  },
})
`

const FILES = `import { action, query, v } from 'svc'

const clients = ['confidential'] as const

export const upload = action({
  clients,
  uses: { storage: 'write' },
  arguments: { bytes: v.int64() },
  handler: (ctx, { bytes }) =>
    ctx.storage.createUpload({
      contentType: 'application/octet-stream',
      maximumBytes: Number(bytes),
    }),
})

export const download = query({
  clients,
  arguments: { file: v.id('files') },
  handler: (ctx, { file }) => ctx.storage.createDownload(file, { expiresInSeconds: 3_600 }),
})
`

/**
 * Functions for a table, which are the same for every table. `nonce` makes each call distinct, so
 * that no result comes from the cache.
 */
const sized = (
  table: 'few' | 'items' | 'live' | 'many',
) => `import { mutation, query, v } from 'svc'
import schema from '../schema'

const clients = ['confidential'] as const
const number = v.int64()

export const fill = mutation({
  clients,
  arguments: { from: number, to: number, title: v.string(), body: v.string() },
  returns: v.null(),
  handler: async (ctx, { from, to, ...rest }) => {
    for (let n = from; n < to; n++) await ctx.db.insert('${table}', { number: n, ...rest })
    return null
  },
})

export const get = query({
  clients,
  arguments: { number, nonce: v.int64() },
  returns: v.nullable(schema.document('${table}')),
  handler: (ctx, { number }) =>
    ctx.db.table('${table}').index('byNumber', (q) => q.eq('number', number)).first(),
})

/** Returns fifty documents. */
export const list = query({
  clients,
  arguments: { from: number, nonce: v.int64() },
  returns: v.array(schema.document('${table}')),
  handler: (ctx, { from }) =>
    ctx.db.table('${table}').index('byNumber', (q) => q.gte('number', from)).take(50),
})

export const add = mutation({
  clients,
  arguments: { number, title: v.string(), body: v.string() },
  returns: v.id('${table}'),
  handler: (ctx, item) => ctx.db.insert('${table}', item),
})

export const change = mutation({
  clients,
  arguments: { number, title: v.string() },
  returns: v.null(),
  errors: { NOT_FOUND: 'not_found' },
  handler: async (ctx, { number, title }) => {
    const found = await ctx.db
      .table('${table}').index('byNumber', (q) => q.eq('number', number)).first()
    if (found === null) return ctx.fail('NOT_FOUND')
    await ctx.db.patch(found._id, { title })
    return null
  },
})
`

const LISTS = `import { mutation, query, v } from 'svc'
import schema from '../schema'

const clients = ['confidential'] as const

/** Returns the fifty newest entries of a list. */
export const newest = query({
  clients,
  arguments: { list: v.int64() },
  returns: v.array(schema.document('entries')),
  handler: (ctx, { list }) =>
    ctx.db.table('entries').index('byList', (q) => q.eq('list', list)).order('desc').take(50),
})

export const add = mutation({
  clients,
  arguments: {
    list: v.int64(), from: v.int64(), to: v.int64(), title: v.string(), body: v.string(),
  },
  returns: v.null(),
  handler: async (ctx, { from, to, ...rest }) => {
    for (let n = from; n < to; n++) await ctx.db.insert('entries', { number: n, ...rest })
    return null
  },
})
`

const TRANSFERS = `import { mutation, query, v } from 'svc'

const clients = ['confidential'] as const

export const open = mutation({
  clients,
  arguments: { count: v.int64(), balance: v.int64() },
  returns: v.array(v.id('accounts')),
  handler: async (ctx, { count, balance }) => {
    const ids = []
    for (let i = 0n; i < count; i++) ids.push(await ctx.db.insert('accounts', { balance }))
    return ids
  },
})

export const transfer = mutation({
  clients,
  arguments: { from: v.id('accounts'), to: v.id('accounts'), amount: v.int64() },
  returns: v.null(),
  errors: { ACCOUNT_NOT_FOUND: 'not_found', NO_FUNDS: 'conflict' },
  handler: async (ctx, { from, to, amount }) => {
    const [source, target] = await Promise.all([ctx.db.get(from), ctx.db.get(to)])
    if (source === null || target === null) return ctx.fail('ACCOUNT_NOT_FOUND')
    if (source.balance < amount) return ctx.fail('NO_FUNDS')
    await ctx.db.patch(from, { balance: source.balance - amount })
    await ctx.db.patch(to, { balance: target.balance + amount })
    return null
  },
})

/** Returns the sum of one page. */
export const sum = query({
  clients,
  arguments: { cursor: v.nullable(v.string()) },
  returns: v.object({ sum: v.int64(), count: v.int64(), cursor: v.nullable(v.string()) }),
  handler: async (ctx, { cursor: from }) => {
    const page = await ctx.db.table('accounts').scan().paginate({ cursor: from, limit: 1_000 })
    const sum = page.items.reduce((total, { balance }) => total + balance, 0n)
    return { sum, count: BigInt(page.items.length), cursor: page.done ? null : page.cursor }
  },
})
`

const LATER = `import { internalMutation, mutation, query, v } from 'svc'
import { internal } from '../_generated/api'

const clients = ['confidential'] as const
const number = v.int64()

/** Schedules the numbers from \`from\` on, all due at one time, in microseconds. */
export const plan = mutation({
  clients,
  arguments: { from: number, to: number, at: number },
  handler: async (ctx, { from, to, at }) => {
    const { work } = internal.later
    for (let n = from; n < to; n++) await ctx.scheduler.runAt(at, work, { number: n })
  },
})

export const work = internalMutation({
  arguments: { number },
  handler: async (ctx, { number }) => {
    await ctx.db.insert('done', { number })
  },
})

/** Does at once what \`work\` does later. */
export const now = mutation({
  clients,
  arguments: { number },
  handler: async (ctx, { number }) => {
    await ctx.db.insert('done', { number })
  },
})
`

const HOOKS = `import { internalMutation, v } from 'svc'

/** Does for a delivery what \`later.now\` does for a call. */
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { number } = delivery.json as { number: number }
    await ctx.db.insert('done', { number: BigInt(number) })
  },
})
`

const HTTP = `import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'

const verify = signature.github({ secret: 'BENCH_WEBHOOK' })

export default httpRoutes({
  digested: hook({ path: '/digested', verify, handler: internal.hooks.onEvent }),
  named: hook({
    path: '/named',
    verify,
    once: ({ json }) => String((json as { number: number }).number),
    handler: internal.hooks.onEvent,
  }),
})
`

/** The Functions of `versions` return `release`. */
export function writeBenchWorkspace(directory: string, release = 0): void {
  const functions = {
    versions: versions(release),
    files: FILES,
    items: sized('items') + ITEMS,
    lists: LISTS,
    few: sized('few'),
    live: sized('live'),
    many: sized('many'),
    transfers: TRANSFERS,
    later: LATER,
    hooks: HOOKS,
  }
  mkdirSync(join(directory, 'functions'), { recursive: true })
  writeFileSync(join(directory, 'schema.ts'), SCHEMA)
  writeFileSync(join(directory, 'http.ts'), HTTP)
  for (const [name, text] of Object.entries(functions)) {
    writeFileSync(join(directory, `functions/${name}.ts`), text)
  }
}
