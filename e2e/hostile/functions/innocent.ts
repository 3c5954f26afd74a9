/** The Functions of concurrent calls, which the attacks must not affect. */
import { mutation, query, v } from 'svc'

const clients = ['confidential'] as const

export const reads = query({
  clients,
  arguments: { nonce: v.int64() },
  returns: v.int64(),
  handler: async (ctx, { nonce }) => {
    await ctx.db.table('channels').index('byName').take(10)
    return nonce
  },
})

export const writes = mutation({
  clients,
  arguments: { nonce: v.int64() },
  returns: v.id('channels'),
  handler: (ctx, { nonce }) => ctx.db.insert('channels', { name: `innocent ${nonce}` }),
})
