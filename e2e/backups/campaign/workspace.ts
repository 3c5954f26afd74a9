/** A Workspace of registers, whose Mutations return what they replaced, and of stored files. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeFileFunctions } from '../../files/workspace.ts'

/** The secret that the Action `registers.secret` reads. */
export const SECRET = 'TOKEN'

const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  posts: table({ text: v.string(), attachment: v.id('files') }),
  registers: table({ key: v.int64(), value: v.int64(), writes: v.int64() })
    .index('byKey', ['key']),
})
`

const FUNCTIONS = `import { action, mutation, query, v } from 'svc'

const clients = ['confidential'] as const
const arguments_ = { key: v.int64(), value: v.int64() }

const find = async (ctx, key) => {
  const [register] = await ctx.db.table('registers').index('byKey', (q) => q.eq('key', key)).take(1)
  return register ?? null
}

export const put = mutation({
  clients, arguments: arguments_, returns: v.int64(),
  handler: async (ctx, { key, value }) => {
    const register = await find(ctx, key)
    if (register === null) await ctx.db.insert('registers', { key, value, writes: 1n })
    else await ctx.db.patch(register._id, { value, writes: register.writes + 1n })
    return register?.value ?? 0n
  },
})

export const toggle = mutation({
  clients, arguments: arguments_, returns: v.int64(),
  handler: async (ctx, { key, value }) => {
    const register = await find(ctx, key)
    if (register === null) await ctx.db.insert('registers', { key, value, writes: 1n })
    else await ctx.db.delete(register._id)
    return register?.value ?? 0n
  },
})

export const attach = mutation({
  clients, arguments: { text: v.string(), file: v.id('files') }, returns: v.int64(),
  handler: async (ctx, { text, file }) => {
    if ((await ctx.storage.get(file)) === null) return -1n
    await ctx.db.insert('posts', { text, attachment: file })
    return 0n
  },
})

export const page = query({
  clients,
  arguments: { cursor: v.nullable(v.string()) },
  handler: async (ctx, { cursor: from }) => {
    const page = await ctx.db.table('registers').scan().paginate({ cursor: from, limit: 1_000 })
    const items = page.items.map(({ key, value, writes }) => ({ key, value, writes }))
    return { items, cursor: page.done ? null : page.cursor }
  },
})

export const files = query({
  clients,
  arguments: { cursor: v.nullable(v.string()) },
  handler: async (ctx, { cursor: from }) => {
    const page = await ctx.db.table('posts').scan().paginate({ cursor: from, limit: 100 })
    const items = await Promise.all(page.items.map(async ({ text, attachment }) => {
      const file = await ctx.storage.get(attachment)
      return { text, file: attachment, sha256: file?.sha256 ?? null }
    }))
    return { items, cursor: page.done ? null : page.cursor }
  },
})

export const secret = action({
  clients, uses: { secrets: ['${SECRET}'] }, returns: v.string(),
  handler: (ctx) => ctx.config.secret('${SECRET}'),
})
`

export function writeRegisters(workspace: string): void {
  writeFileFunctions(workspace)
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  appendFileSync(join(workspace, 'functions/registers.ts'), FUNCTIONS)
}
