import { mutation, query, v } from 'svc'
import schema from '../schema'

const clients = ['confidential'] as const
const sku = v.string({ minimumLength: 1, maximumLength: 64 })
const name = v.string({ minimumLength: 1, maximumLength: 200 })
const quantity = v.int64({ minimum: 0n })

/** Returns up to 100 items, by SKU; those after `after` where it is given. */
export const list = query({
  clients,
  arguments: { after: v.optional(sku) },
  returns: v.array(schema.document('items')),
  handler: (ctx, { after }) =>
    ctx.db
      .table('items')
      .index('bySku', (q) => (after === undefined ? q : q.gt('sku', after)))
      .take(100),
})

/** Returns one item; null if there is none. */
export const get = query({
  clients,
  arguments: { id: v.id('items') },
  returns: v.nullable(schema.document('items')),
  handler: (ctx, { id }) => ctx.db.get(id),
})

/** Adds an item and returns its ID. */
export const create = mutation({
  clients,
  arguments: { sku, name, quantity },
  returns: v.id('items'),
  errors: { SKU_EXISTS: 'conflict' },
  handler: async (ctx, item) => {
    const same = await ctx.db
      .table('items')
      .index('bySku', (q) => q.eq('sku', item.sku))
      .first()
    if (same !== null) return ctx.fail('SKU_EXISTS')
    return await ctx.db.insert('items', item)
  },
})

/** Changes the name or the quantity of an item. */
export const update = mutation({
  clients,
  arguments: { id: v.id('items'), name: v.optional(name), quantity: v.optional(quantity) },
  returns: v.null(),
  errors: { ITEM_NOT_FOUND: 'not_found' },
  handler: async (ctx, { id, ...changes }) => {
    const item = await ctx.db.get(id)
    if (item === null) return ctx.fail('ITEM_NOT_FOUND')
    await ctx.db.patch(id, {
      name: changes.name ?? item.name,
      quantity: changes.quantity ?? item.quantity,
    })
    return null
  },
})

/** Removes an item. */
export const remove = mutation({
  clients,
  arguments: { id: v.id('items') },
  returns: v.null(),
  errors: { ITEM_NOT_FOUND: 'not_found' },
  handler: async (ctx, { id }) => {
    if ((await ctx.db.get(id)) === null) return ctx.fail('ITEM_NOT_FOUND')
    await ctx.db.delete(id)
    return null
  },
})
