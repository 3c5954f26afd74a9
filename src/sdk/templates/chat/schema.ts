import { defineSchema, table, v } from 'svc'

export default defineSchema({
  channels: table({
    name: v.string({ minimumLength: 1, maximumLength: 64 }),
    topic: v.optional(v.string({ maximumLength: 250 })),
  }).unique('byName', ['name']),

  messages: table({
    channel: v.id('channels'),
    author: v.string({ minimumLength: 1, maximumLength: 64 }),
    body: v.string({ minimumLength: 1, maximumLength: 4000 }),
    kind: v.union(v.literal('text'), v.literal('system')),
    likes: v.int64({ minimum: 0n }),
  })
    .index('byChannel', ['channel'])
    .index('byAuthor', ['author', 'channel']),
})
