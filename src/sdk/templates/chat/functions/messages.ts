import { mutation, query, v } from 'svc'
import schema from '../schema'

/** Returns the newest messages of a channel, newest first. */
export const list = query({
  clients: ['public', 'confidential'],
  arguments: {
    channel: v.id('channels'),
    limit: v.optional(v.int64({ minimum: 1n, maximum: 200n })),
  },
  returns: v.array(schema.document('messages')),
  handler: (ctx, { channel, limit = 50n }) =>
    ctx.db
      .table('messages')
      .index('byChannel', (q) => q.eq('channel', channel))
      .order('desc')
      .take(Number(limit)),
})

/** Adds a message to a channel. */
export const send = mutation({
  clients: ['public', 'confidential'],
  arguments: {
    channel: v.id('channels'),
    author: v.string({ minimumLength: 1, maximumLength: 64 }),
    body: v.string({ minimumLength: 1, maximumLength: 4000 }),
  },
  returns: v.id('messages'),
  errors: { CHANNEL_NOT_FOUND: 'not_found' },
  handler: async (ctx, { channel, author, body }) => {
    if ((await ctx.db.get(channel)) === null) return ctx.fail('CHANNEL_NOT_FOUND')
    return await ctx.db.insert('messages', { channel, author, body, kind: 'text', likes: 0n })
  },
})
