/** The Workspace that the commands of documents act on, by path: the chat, and what they name. */
export const WORKSPACE: Readonly<Record<string, string>> = {
  'crons.ts': `import { cronJobs } from 'svc'
import { internal } from './_generated/api'

export default cronJobs({
  digest: { schedule: '0 7 * * mon-fri', timeZone: 'Europe/Rome', function: internal.tasks.digest },
})
`,
  'http.ts': `import { hook, httpRoutes } from 'svc'
import { internal } from './_generated/api'

export default httpRoutes({
  stripe: hook({ path: '/stripe', verify: 'none', handler: internal.payments.onEvent }),
  github: hook({ path: '/github', verify: 'none', handler: internal.payments.onEvent }),
})
`,
  'schema.ts': `import { defineSchema, table, v } from 'svc'

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
  users: table({ name: v.string() }),
  tasks: table({ title: v.string(), priority: v.optional(v.string()) }),
  payments: table({ intent: v.string() }),
})
`,
  'functions/counters.ts': `import { internalMutation } from 'svc'

export const repair = internalMutation({ handler: () => null })
`,
  'functions/payments.ts': `import { internalMutation, v } from 'svc'

/** Fails for an event without an ID. */
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { id } = delivery.json as { id?: string }
    if (id === undefined) throw new Error('the event has no ID')
    await ctx.db.insert('payments', { intent: id })
  },
})
`,
  'functions/tasks.ts': `import { internalMutation, mutation, v } from 'svc'
import { internal } from '../_generated/api'

export const add = mutation({
  clients: ['public', 'confidential'],
  arguments: { title: v.string() },
  returns: v.id('tasks'),
  handler: (ctx, { title }) => ctx.db.insert('tasks', { title }),
})

export const digest = internalMutation({ handler: () => null })

export const remind = internalMutation({
  handler: async (ctx) => {
    await ctx.scheduler.runAfter({ minutes: 60 }, internal.tasks.digest, {})
  },
})
`,
  'functions/uploads.ts': `import { action, v } from 'svc'

export const grant = action({
  clients: ['confidential'],
  uses: { storage: 'write' },
  returns: v.uploadGrant(),
  handler: (ctx) => ctx.storage.createUpload({ contentType: 'image/png', maximumBytes: 1_024 }),
})
`,
}
