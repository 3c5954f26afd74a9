/** The Workspace of the workload: changes, and Queries of every shape over two tables. */
export const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  items: table({ key: v.int64(), room: v.int64(), rank: v.int64(), value: v.int64() })
    .unique('byKey', ['key'])
    .index('byRank', ['room', 'rank']),
  cells: table({ value: v.int64() }),
})
`

/** Every result names the Release. Lists have the IDs of their items, so that they are patched. */
export const functionsOf = (release: number) => `import {
  type Id, mutation, type MutationContext, query, type QueryContext, v,
} from 'svc'

const clients = ['confidential'] as const
const number = v.int64()
const changed = v.object({
  kind: v.string(), key: number, room: number, rank: number, value: number,
})
const returns = v.object({
  release: number,
  numbers: v.array(number),
  items: v.array(v.object({ _id: v.id('items'), rank: number, value: number })),
  cursor: v.nullable(v.string()),
  padding: v.string(),
})
interface Item { _id: Id<'items'>; rank: bigint; value: bigint }
const result = (numbers: bigint[]) =>
  ({ release: ${release}n, numbers, items: [], cursor: null, padding: '' })
const listOf = (items: Item[], cursor: string | null = null, padding = '') => ({
  release: ${release}n,
  numbers: [],
  items: items.map(({ _id, rank, value }) => ({ _id, rank, value })),
  cursor,
  padding,
})
const summaryOf = (items: Item[]) =>
  [BigInt(items.length), items.reduce((sum, { value }) => sum + value, 0n)]
const byKey = (ctx: QueryContext, key: bigint) =>
  ctx.db.table('items').index('byKey', (q) => q.eq('key', key)).unique()
const inRoom = (ctx: QueryContext, room: bigint) =>
  ctx.db.table('items').index('byRank', (q) => q.eq('room', room))

export const prepare = mutation({
  clients,
  arguments: { cells: number },
  returns: v.array(v.id('cells')),
  handler: async (ctx, { cells }) => {
    const ids = []
    for (let i = 0n; i < cells; i++) ids.push(await ctx.db.insert('cells', { value: 0n }))
    return ids
  },
})

export const change = mutation({
  clients,
  arguments: { changes: v.array(changed), cells: v.array(v.id('cells')), aborts: v.boolean() },
  returns: v.null(),
  errors: { ABORTED: 'conflict' },
  handler: async (ctx: MutationContext<'ABORTED'>, { changes, cells, aborts }) => {
    for (const { kind, key, room, rank, value } of changes) {
      if (kind === 'cell') {
        await ctx.db.patch(cells[Number(key)]!, { value })
        continue
      }
      const found = await byKey(ctx, key)
      if (kind === 'put') {
        if (found === null) await ctx.db.insert('items', { key, room, rank, value })
        else await ctx.db.replace(found._id, { key, room, rank, value })
      } else if (found === null) continue
      else if (kind === 'remove') await ctx.db.delete(found._id)
      else if (kind === 'set') await ctx.db.patch(found._id, { value })
      else if (kind === 'add') await ctx.db.patch(found._id, { value: found.value + value })
      else await ctx.db.patch(found._id, { rank })
    }
    if (aborts) return ctx.fail('ABORTED')
    return null
  },
})

export const cell = query({
  clients, returns,
  arguments: { cell: v.id('cells') },
  handler: async (ctx, { cell }) => {
    const found = await ctx.db.get(cell)
    return result(found === null ? [] : [found.value])
  },
})

export const item = query({
  clients, returns,
  arguments: { key: number },
  handler: async (ctx, { key }) => {
    const found = await byKey(ctx, key)
    return result(found === null ? [] : [found.room, found.rank, found.value])
  },
})

export const total = query({
  clients, returns,
  handler: async (ctx) => result(summaryOf(await ctx.db.table('items').scan().collect())),
})

export const count = query({
  clients, returns,
  arguments: { room: number },
  handler: async (ctx, { room }) => result(summaryOf(await inRoom(ctx, room).collect())),
})

/** Reads page after page. */
export const walk = query({
  clients, returns,
  arguments: { room: number, limit: number },
  handler: async (ctx, { room, limit }) => {
    const items: Item[] = []
    for (let cursor: string | null = null; ; ) {
      const page = await inRoom(ctx, room).paginate({ cursor, limit: Number(limit) })
      items.push(...page.items)
      if (page.done) return listOf(items)
      cursor = page.cursor
    }
  },
})

export const padded = query({
  clients, returns,
  arguments: { room: number, bytes: number },
  handler: async (ctx, { room, bytes }) =>
    listOf(await inRoom(ctx, room).collect(), null, 'x'.repeat(Number(bytes))),
})

export const range = query({
  clients, returns,
  arguments: { room: number, from: number, to: number, limit: number, order: v.string() },
  handler: async (ctx, { room, from, to, limit, order }) =>
    listOf(await ctx.db.table('items')
      .index('byRank', (q) => q.eq('room', room).gte('rank', from).lt('rank', to))
      .order(order === 'desc' ? 'desc' : 'asc')
      .take(Number(limit))),
})

export const page = query({
  clients, returns,
  arguments: {
    room: number, limit: number, cursor: v.nullable(v.string()), until: v.nullable(v.string()),
  },
  handler: async (ctx, { room, limit, cursor, until }) => {
    const page = await inRoom(ctx, room).paginate({ cursor, limit: Number(limit), until })
    return listOf(page.items, page.cursor)
  },
})
`
