/** A Workspace whose Functions show what is visible: counters, a Release and a variable. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  counters: table({ number: v.int64(), value: v.int64() }).unique('byNumber', ['number']),
})
`

const functionsOf = (
  release: number,
) => `import { mutation, query, type QueryContext, v } from 'svc'

const clients = ['confidential'] as const
const number = v.int64()
const find = (ctx: QueryContext, number: bigint) =>
  ctx.db.table('counters').index('byNumber', (q) => q.eq('number', number)).unique()

/** Returns the new value. */
export const add = mutation({
  clients, arguments: { number }, returns: v.int64(),
  handler: async (ctx, { number }) => {
    const found = await find(ctx, number)
    if (found === null) {
      await ctx.db.insert('counters', { number, value: 1n })
      return 1n
    }
    await ctx.db.patch(found._id, { value: found.value + 1n })
    return found.value + 1n
  },
})

export const read = query({
  clients, arguments: { number }, returns: v.int64(),
  handler: async (ctx, { number }) => (await find(ctx, number))?.value ?? 0n,
})

/** Reads all counters by a range; random numbers keep the result from being cached. */
export const list = query({
  clients, arguments: { number }, returns: v.int64(),
  handler: async (ctx, { number }) => {
    const all = await ctx.db.table('counters').scan().collect()
    Math.random()
    return all.find((each) => each.number === number)?.value ?? 0n
  },
})

export const release = query({
  clients, returns: v.int64(),
  handler: () => ${release}n,
})

export const setting = query({
  clients, returns: v.nullable(v.string()),
  handler: (ctx) => ctx.config.variable('SETTING'),
})
`

/** Writes the version of the Workspace whose Release has this number. */
export function writeRelease(workspace: string, release: number): void {
  rmSync(join(workspace, 'functions'), { recursive: true })
  mkdirSync(join(workspace, 'functions'))
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  writeFileSync(join(workspace, 'functions/seen.ts'), functionsOf(release))
}
