/** Functions of the new Workspace with the mistakes that the compiler must find, and no others. */
export const MISTAKES = `
import { action, internalQuery, mutation, query, table, v } from 'svc'
import { api } from '../_generated/api'
import type { Doc, Id, IndexRange, Infer, MutationContext, QueryContext } from 'svc'
import schema from '../schema'
type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <_ extends true>() => {}
same<Equal<Doc<'channels'>, {
  _id: Id<'channels'>; _createdAt: bigint; _revision: bigint
  name: string; topic?: string | undefined
}>>()
same<Equal<Doc<'messages'>['kind'], 'text' | 'system'>>()
const five = v.object({ a: v.literal(5n), b: v.optional(v.record(v.float64())) })
const choice = v.union(v.null(), five)
same<Equal<Infer<typeof choice>, null | { a: 5n; b?: { [key: string]: number } | undefined }>>()
declare const range: IndexRange<{ a?: string; b: string }, readonly ['a', 'b']>
range.eq('a', undefined)
  // @ts-expect-error a field that is never absent
  .eq('b', undefined)
async function anyQuery(ctx: QueryContext) { return ctx.now() }
async function failing(ctx: QueryContext<'Y'>) { return ctx.fail('Y') }
async function writing(ctx: MutationContext, id: Id<'channels'>) { await ctx.db.delete(id) }

export const reads = query({
  arguments: { id: v.id('messages'), channel: v.id('channels') },
  errors: { X: 'conflict' },
  handler: async (ctx, { id, channel }) => {
    const messages = ctx.db.table('messages')
    const message = await ctx.db.get(id)
    same<Equal<typeof message, Doc<'messages'> | null>>()
    messages.index('byAuthor', (q) =>
      q.eq('author', 'x').eq('channel', channel).gte('_createdAt', 5n).lt('_createdAt', 7n))
    messages.index('byAuthor', (q) => q.gt('author', 'x').lte('author', 'y'))
    messages.index('byChannel')
    for await (const each of messages.scan().order('desc'))
      same<Equal<typeof each, Doc<'messages'>>>()
    const page = await messages.scan().paginate({ cursor: null, limit: 10 })
    same<Equal<typeof page.items, Doc<'messages'>[]>>()
    // @ts-expect-error a table that does not exist
    ctx.db.table('nope')
    // @ts-expect-error an ID of a table that does not exist
    v.id('nope')
    // @ts-expect-error an index that does not exist
    messages.index('nope')
    // @ts-expect-error the second field of the index first
    messages.index('byAuthor', (q) => q.eq('channel', channel))
    // @ts-expect-error a comparison behind a bound
    messages.index('byAuthor', (q) => q.gt('author', 'x').eq('channel', channel))
    // @ts-expect-error two lower bounds
    messages.index('byAuthor', (q) => q.gt('author', 'x').gte('author', 'y'))
    // @ts-expect-error the creation time before the fields
    messages.index('byAuthor', (q) => q.gt('_createdAt', 5n))
    // @ts-expect-error the creation time can only be bounded
    messages.index('byChannel', (q) => q.eq('channel', channel).eq('_createdAt', 5n))
    // @ts-expect-error an ID of another table
    messages.index('byChannel', (q) => q.eq('channel', id))
    // @ts-expect-error a write in a Query
    ctx.db.insert('channels', { name: 'x' })
    // @ts-expect-error a write in a Query
    ctx.db.delete(id)
    // @ts-expect-error a code that is not declared
    ctx.fail('Y')
    // @ts-expect-error plain text is no ID
    ctx.db.get('messages_1')
    anyQuery(ctx)
    // @ts-expect-error a helper that fails with what is not declared
    failing(ctx)
    // @ts-expect-error a helper that writes
    writing(ctx, channel)
    if (message === null) return ctx.fail('X')
    return message.likes
  },
})

export const writes = mutation({
  arguments: { channel: v.id('channels') },
  returns: v.null(),
  handler: async (ctx, { channel }) => {
    const message = { channel, author: 'a', body: 'b', kind: 'text', likes: 5n } as const
    await ctx.db.insert('messages', message)
    // @ts-expect-error an int64 is a bigint
    await ctx.db.insert('messages', { ...message, likes: 5 })
    // @ts-expect-error not a member of the union
    await ctx.db.insert('messages', { ...message, kind: 'nope' })
    // @ts-expect-error a field that is missing
    await ctx.db.insert('messages', { channel, author: 'a' })
    // @ts-expect-error a field that does not exist
    await ctx.db.insert('channels', { name: 'a', nope: 1n })
    // @ts-expect-error a table that does not exist
    await ctx.db.insert('nope', {})
    await ctx.db.patch(channel, { topic: undefined })
    // @ts-expect-error text, not a number
    await ctx.db.patch(channel, { topic: 5 })
    // @ts-expect-error system fields are not written
    await ctx.db.patch(channel, { _createdAt: 5n })
    // @ts-expect-error no code is declared
    ctx.fail('Y')
    // @ts-expect-error a helper that fails with what is not declared
    failing(ctx)
    anyQuery(ctx)
    writing(ctx, channel)
    console.log(new URL('https://example.com').host, crypto.randomUUID(), new TextEncoder())
    // @ts-expect-error there is no process
    process.exit(0)
  },
})

export const acts = action({
  uses: { network: ['api.example.com'], secrets: ['KEY'] },
  returns: v.float64(),
  handler: async (ctx) => {
    const found = await ctx.runQuery(api.channels.list)
    const first: string | undefined = found[0]?.name
    // @ts-expect-error the name is text
    const wrong: number | undefined = found[0]?.name
    // @ts-expect-error arguments are missing
    await ctx.runQuery(api.messages.list)
    // @ts-expect-error a Mutation is no Query
    await ctx.runQuery(api.channels.create, { name: 'a', author: 'b' })
    await ctx.runMutation(api.channels.create, { name: 'a', author: first ?? 'b' })
    // @ts-expect-error an Action has no documents of its own
    ctx.db.table('channels')
    const signal = AbortSignal.timeout(Number(await ctx.config.secret('KEY')))
    const response = await fetch('https://api.example.com', { method: 'POST', body: 'x', signal })
    clearTimeout(setTimeout((n: number) => n, 5, 1))
    await new Promise((resolve) => setTimeout(resolve, setInterval(resolve, 5)))
    const { used } = (await ctx.usage()).requests
    return response.ok ? used : response.headers.has('a') ? 1 : 0
  },
})

export const calls = query({
  // @ts-expect-error only an Action has uses
  uses: { network: [] },
  handler: async (ctx) => {
    // @ts-expect-error a Query calls no Mutation
    await ctx.runMutation(api.channels.create, { name: 'a', author: 'b' })
    // @ts-expect-error only an Action reads secrets
    await ctx.config.secret('KEY')
    // @ts-expect-error a variable may not be set
    const set: string = await ctx.config.variable('A')
    return (await ctx.usage()).documentsRead.used
  },
})

const caller = (ctx: QueryContext) => ctx.auth.identity?.subject
export const users = mutation({
  auth: 'user',
  returns: v.string(),
  handler: async (ctx) => {
    caller(ctx)
    // @ts-expect-error a user is no guest
    ctx.auth.guest
    const bearer: string = await ctx.auth.issueGuest({ expiresInSeconds: 60 })
    // @ts-expect-error a guest has an end
    await ctx.auth.issueGuest()
    // @ts-expect-error a provider need not tell an address
    const email: string = ctx.auth.user.email
    return bearer + email + ctx.auth.user.roles.join() + ctx.auth.identity.subject
  },
})
export const guests = internalQuery({
  auth: 'guest',
  // @ts-expect-error a guest has no roles
  handler: (ctx) => [ctx.auth.guest.subject, ctx.auth.guest.roles],
})
export const anybody = query({
  auth: 'optional',
  handler: (ctx) => {
    caller(ctx)
    // @ts-expect-error a Query lets nobody in
    ctx.auth.issueGuest({ expiresInSeconds: 60 })
    // @ts-expect-error there may be nobody
    return ctx.auth.user.subject + (ctx.auth.service?.roles ?? [])
  },
})
export const nobody = query({
  handler: (ctx) => {
    const none: null = ctx.auth.identity
    // @ts-expect-error nobody is seen
    return [none, ctx.auth.user]
  },
})
// @ts-expect-error a mode that does not exist
export const admins = query({ auth: 'admin', handler: () => 5n })
export const whole = query({ returns: v.int64(), handler: () => 5n })
// @ts-expect-error the result is a number
export const a = query({ returns: v.int64(), handler: () => 5 })
// @ts-expect-error the option is called arguments
export const b = query({ args: {}, handler: () => 5n })
// @ts-expect-error an internal Function has no clients
export const c = internalQuery({ clients: ['public'], handler: () => 5n })
// @ts-expect-error a kind that does not exist
export const d = query({ clients: ['publc'], handler: () => 5n })
// @ts-expect-error a result is there or null
export const e = query({ returns: v.optional(v.string()), handler: () => 'x' })
// @ts-expect-error a kind of error that does not exist
export const f = query({ errors: { X: 'missing' }, handler: () => 'x' })
// @ts-expect-error only a field can be left out
v.array(v.optional(v.string()))
// @ts-expect-error bounds of an int64 are bigints
v.int64({ minimum: 0 })
// @ts-expect-error a number is no literal
v.literal(5)
// @ts-expect-error a field that the table has not
table({ a: v.string() }).index('byB', ['b'])
// @ts-expect-error an index without fields
table({ a: v.string() }).index('byNothing', [])
// @ts-expect-error a table that does not exist
schema.document('nope')
`
