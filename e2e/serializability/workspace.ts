/**
 * The Workspace of the workload: the operations of history.ts as an author would write them. Every
 * write reads first, by an index, by ID or by a range, and some reads end before their range.
 */

export const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  cells: table({ value: v.int64() }),
  lists: table({ key: v.int64(), elements: v.array(v.int64()) }).unique('byKey', ['key']),
  entries: table({ key: v.int64(), position: v.int64(), element: v.int64() })
    .index('byPosition', ['key', 'position']),
  registers: table({ space: v.int64(), key: v.int64(), value: v.int64() })
    .unique('byKey', ['key'])
    .index('byValue', ['space', 'value']),
})
`

export const FUNCTIONS = `import {
  type Id, mutation, type MutationContext, query, type QueryContext, v,
} from 'svc'

const clients = ['confidential'] as const
const operation = v.object({
  kind: v.string(),
  key: v.int64(),
  value: v.int64(),
  to: v.int64(),
  limit: v.int64(),
  how: v.string(),
})
interface Operation {
  kind: string
  key: bigint
  value: bigint
  to: bigint
  limit: bigint
  how: string
}
type Cells = Id<'cells'>[]
const common = {
  clients,
  returns: v.array(v.array(v.int64())),
}
const input = { operations: v.array(operation), cells: v.array(v.id('cells')) }

/** Lists with even keys are one document, those with odd keys one document per element. */
const isOneDocument = (key: bigint) => key % 2n === 0n
const findList = (ctx: QueryContext, key: bigint) =>
  ctx.db.table('lists').index('byKey', (q) => q.eq('key', key)).unique()
const findRegister = (ctx: QueryContext, key: bigint) =>
  ctx.db.table('registers').index('byKey', (q) => q.eq('key', key)).unique()
const entries = (ctx: QueryContext, key: bigint) =>
  ctx.db.table('entries').index('byPosition', (q) => q.eq('key', key))

async function list(ctx: QueryContext, key: bigint): Promise<bigint[]> {
  if (isOneDocument(key)) return (await findList(ctx, key))?.elements ?? []
  return (await entries(ctx, key).collect()).map(({ element }) => element)
}

async function append(ctx: MutationContext, key: bigint, element: bigint): Promise<bigint[]> {
  if (!isOneDocument(key)) {
    const last = await entries(ctx, key).order('desc').first()
    const position = (last?.position ?? 0n) + 1n
    await ctx.db.insert('entries', { key, position, element })
    return [position]
  }
  const found = await findList(ctx, key)
  const elements = [...(found?.elements ?? []), element]
  if (found === null) await ctx.db.insert('lists', { key, elements })
  else await ctx.db.patch(found._id, { elements })
  return [BigInt(elements.length)]
}

async function read(ctx: QueryContext, key: bigint, cells: Cells): Promise<bigint[]> {
  const cell = cells[Number(key)]
  if (cell === undefined) {
    const found = await findRegister(ctx, key)
    return found === null ? [] : [found.value]
  }
  const found = await ctx.db.get(cell)
  return found === null || found.value === 0n ? [] : [found.value]
}

async function write(ctx: MutationContext, { key, value, how }: Operation, cells: Cells) {
  const before = await read(ctx, key, cells)
  const cell = cells[Number(key)]
  if (cell !== undefined) {
    if (how === 'patch') await ctx.db.patch(cell, { value })
    else await ctx.db.replace(cell, { value })
    return before
  }
  const found = await findRegister(ctx, key)
  const fields = { space: key / 1000n, key, value }
  if (found === null) {
    await ctx.db.insert('registers', fields)
  } else if (how === 'patch') {
    await ctx.db.patch(found._id, { value })
  } else if (how === 'replace') {
    await ctx.db.replace(found._id, fields)
  } else {
    await ctx.db.delete(found._id)
    await ctx.db.insert('registers', fields)
  }
  return before
}

async function range(ctx: QueryContext, { key, value, to, limit, how }: Operation) {
  const rows = await ctx.db.table('registers')
    .index('byValue', (q) => q.eq('space', key).gte('value', value).lt('value', to))
    .order(how === 'desc' ? 'desc' : 'asc')
    .take(Number(limit))
  return rows.flatMap((row) => [row.key, row.value])
}

function look(ctx: QueryContext, each: Operation, cells: Cells): Promise<bigint[]> {
  if (each.kind === 'list') return list(ctx, each.key)
  if (each.kind === 'range') return range(ctx, each)
  return read(ctx, each.key, cells)
}

function perform(ctx: MutationContext, each: Operation, cells: Cells): Promise<bigint[]> {
  if (each.kind === 'append') return append(ctx, each.key, each.value)
  if (each.kind === 'write') return write(ctx, each, cells)
  return look(ctx, each, cells)
}

/** Creates eight registers that are read by ID. Zero stands for no value. */
export const prepare = mutation({
  clients,
  returns: v.array(v.id('cells')),
  handler: async (ctx) => {
    const cells: Cells = []
    for (let i = 0; i < 8; i++) cells.push(await ctx.db.insert('cells', { value: 0n }))
    return cells
  },
})

export const run = mutation({
  ...common,
  arguments: { ...input, aborts: v.boolean() },
  errors: { ABORTED: 'conflict' },
  handler: async (ctx, { operations, cells, aborts }) => {
    const answers: bigint[][] = []
    for (const each of operations) answers.push(await perform(ctx, each, cells))
    if (aborts) return ctx.fail('ABORTED')
    return answers
  },
})

export const lookInTurn = query({
  ...common,
  arguments: input,
  handler: async (ctx, { operations, cells }) => {
    const answers: bigint[][] = []
    for (const each of operations) answers.push(await look(ctx, each, cells))
    return answers
  },
})

export const lookTogether = query({
  ...common,
  arguments: input,
  handler: (ctx, { operations, cells }) =>
    Promise.all(operations.map((each) => look(ctx, each, cells))),
})
`
