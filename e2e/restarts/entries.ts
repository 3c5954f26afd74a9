/** A Workspace that stores numbers, one document each. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, fields, query } from '../application.ts'

const SCHEMA = `
import { defineSchema, table, v } from 'svc'
export default defineSchema({ entries: table({ number: v.int64() }).index('byNumber', ['number']) })
`

const FUNCTIONS = `
import { mutation, query, v } from 'svc'
const clients = ['confidential'] as const

export const add = mutation({
  clients, arguments: { number: v.int64() }, returns: v.null(),
  handler: async (ctx, { number }) => {
    await ctx.db.insert('entries', { number })
    return null
  },
})

export const count = query({
  clients, arguments: { number: v.int64() }, returns: v.int64(),
  handler: async (ctx, { number }) => {
    const found = ctx.db.table('entries').index('byNumber', (q) => q.eq('number', number))
    return BigInt((await found.take(3)).length)
  },
})

export const page = query({
  clients,
  arguments: { cursor: v.nullable(v.string()) },
  returns: v.object({ numbers: v.array(v.int64()), cursor: v.nullable(v.string()) }),
  handler: async (ctx, { cursor: from }) => {
    const page = await ctx.db.table('entries').scan().paginate({ cursor: from, limit: 1_000 })
    const numbers = page.items.map(({ number }) => number)
    return { numbers, cursor: page.done ? null : page.cursor }
  },
})
`

export function writeEntries(workspace: string): void {
  rmSync(join(workspace, 'functions'), { recursive: true })
  mkdirSync(join(workspace, 'functions'))
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  writeFileSync(join(workspace, 'functions/entries.ts'), FUNCTIONS)
}

/** Returns the number of every document. */
export async function storedNumbers(app: Application): Promise<number[]> {
  const stored: number[] = []
  let cursor: string | null = null
  do {
    const given = cursor === null ? { type: 'null' } : { type: 'string', value: cursor }
    const { body } = await query(app, { function: 'entries.page', arguments: { cursor: given } })
    const page = fields(body.result)
    for (const { value } of page.numbers.value) stored.push(Number(value))
    cursor = page.cursor.value ?? null
  } while (cursor !== null)
  return stored
}
