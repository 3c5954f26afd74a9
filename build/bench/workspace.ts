/** The Workspace that the bench measures: one table, one index, one Function of each kind. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  items: table({ number: v.int64(), title: v.string(), body: v.string() })
    .index('byNumber', ['number']),
})
`

/** \`nonce\` makes every call another one, so that no result comes from the cache. */
const FUNCTIONS = `import { mutation, query, v } from 'svc'
import schema from '../schema'

export const get = query({
  clients: ['confidential'],
  arguments: { number: v.int64(), nonce: v.optional(v.int64()) },
  returns: v.nullable(schema.document('items')),
  handler: (ctx, { number }) =>
    ctx.db.table('items').index('byNumber', (q) => q.eq('number', number)).first(),
})

export const add = mutation({
  clients: ['confidential'],
  arguments: { number: v.int64(), title: v.string(), body: v.string() },
  returns: v.id('items'),
  handler: (ctx, item) => ctx.db.insert('items', item),
})
`

export function writeBenchWorkspace(directory: string): void {
  mkdirSync(join(directory, 'functions'), { recursive: true })
  writeFileSync(join(directory, 'schema.ts'), SCHEMA)
  writeFileSync(join(directory, 'functions/items.ts'), FUNCTIONS)
}
