import { mutation, query, v } from 'svc'
import schema from '../schema'

/** Returns the first 100 channels, by name. */
export const list = query({
  clients: ['public', 'confidential'],
  returns: v.array(schema.document('channels')),
  handler: (ctx) => ctx.db.table('channels').index('byName').take(100),
})

/** Creates a channel with a first message that says so. */
export const create = mutation({
  clients: ['public', 'confidential'],
  arguments: {
    name: v.string({ minimumLength: 1, maximumLength: 64 }),
    topic: v.optional(v.string({ maximumLength: 250 })),
    author: v.string({ minimumLength: 1, maximumLength: 64 }),
  },
  returns: v.id('channels'),
  errors: { CHANNEL_EXISTS: 'conflict' },
  handler: async (ctx, { name, topic, author }) => {
    const same = await ctx.db
      .table('channels')
      .index('byName', (q) => q.eq('name', name))
      .first()
    if (same !== null) return ctx.fail('CHANNEL_EXISTS')
    const channel = await ctx.db.insert('channels', { name, topic })
    await ctx.db.insert('messages', {
      channel,
      author,
      body: `${author} opened #${name}`,
      kind: 'system',
      likes: 0n,
    })
    return channel
  },
})
