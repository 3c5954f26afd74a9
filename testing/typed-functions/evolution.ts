/** A Workspace with defaults and open unions, and the mistakes that the compiler must find. */
export const EVOLUTION: Readonly<Record<string, string>> = {
  'schema.ts': `import { defineSchema, table, v } from 'svc'

const home = v.object({ city: v.optional(v.string()).default('Rome') })

export default defineSchema({
  tickets: table({
    title: v.string(),
    priority: v.optional(v.int64()).default(3n),
    status: v.open(v.union(v.literal('open'), v.literal('closed'))),
    home: v.optional(home).default({}),
    note: v.optional(v.string()),
    all: v.array(home),
  }).index('byPriority', ['priority', 'status']),
})
`,
  'functions/tickets.ts': `
import { type Doc, type Id, type Infer, type InferInput, mutation, type NewDoc, query, v } from 'svc'
import { api } from '../_generated/api'
import schema from '../schema'
type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <_ extends true>() => {}
type Status = 'open' | 'closed' | { unknown: true }
same<Equal<Doc<'tickets'>['priority'], bigint>>()
same<Equal<Doc<'tickets'>['home'], { city: string }>>()
same<Equal<Doc<'tickets'>['all'], { city: string }[]>>()
same<Equal<Doc<'tickets'>['note'], string | undefined>>()
same<Equal<NewDoc<'tickets'>['priority'], bigint | undefined>>()
same<Equal<NewDoc<'tickets'>['home'], { city?: string | undefined } | undefined>>()
const status: Status = {} as Doc<'tickets'>['status']
const back: NewDoc<'tickets'>['status'] = status
const choice = v.nullable(v.record(v.object({ a: v.optional(v.boolean()).default(true) })))
same<Equal<Infer<typeof choice>, { [key: string]: { a: boolean } } | null>>()
same<Equal<InferInput<typeof choice>, { [key: string]: { a?: boolean | undefined } } | null>>()

export const list = query({
  arguments: { limit: v.optional(v.int64()).default(10n), kind: v.open(v.union(v.literal('a'))) },
  returns: v.array(schema.document('tickets')),
  handler: async (ctx, { limit, kind }) => {
    same<Equal<typeof limit, bigint>>()
    if (typeof kind === 'object') same<Equal<typeof kind.unknown, true>>()
    // @ts-expect-error a member that only a later Release knows
    if (kind === 'b') return []
    return ctx.db.table('tickets').index('byPriority', (q) => q.eq('priority', 3n)).collect()
  },
})

export const summary = query({
  returns: v.object({ count: v.optional(v.int64()).default(0n), all: v.int64() }),
  handler: async () => ({ all: 1n }),
})

export const write = mutation({
  arguments: { id: v.id('tickets') },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    const ticket = await ctx.db.get(id)
    if (ticket === null) return null
    const { title, status, all } = ticket
    await ctx.db.insert('tickets', { title, status: 'open', all: [{}] })
    await ctx.db.replace(id, { title, status, all, home: { city: 'Oslo' }, priority: 1n })
    await ctx.db.patch(id, { status, priority: undefined })
    same<Equal<typeof ticket.priority, bigint>>()
    // @ts-expect-error a field without a default
    await ctx.db.insert('tickets', { title, status: 'open' })
    // @ts-expect-error not a member of the union
    await ctx.db.patch(id, { status: 'late' })
    // @ts-expect-error an int64 is a bigint
    await ctx.db.patch(id, { priority: 5 })
    return null
  },
})

// @ts-expect-error a default of another type
v.optional(v.int64()).default(3)
// @ts-expect-error a default of a field that cannot be left out
v.string().default('a')
// @ts-expect-error a second default
v.optional(v.string()).default('a').default('b')
// @ts-expect-error an open validator that is no union
v.open(v.string())
// @ts-expect-error a default outside of an object
v.array(v.optional(v.string()).default('a'))
export type Unused = typeof api | Id<'tickets'> | typeof back
`,
}
