import { defineSchema, table, v } from 'svc'

export default defineSchema({
  items: table({
    sku: v.string({ minimumLength: 1, maximumLength: 64 }),
    name: v.string({ minimumLength: 1, maximumLength: 200 }),
    quantity: v.int64({ minimum: 0n }),
  }).unique('bySku', ['sku']),
})
