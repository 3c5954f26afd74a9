/** A Workspace of notes, with a Function for each thing that the test kit does. */
const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  notes: table({ text: v.string(), at: v.timestamp(), by: v.nullable(v.string()) })
    .unique('byText', ['text']),
})
`
const NOTES = `import { action, internalAction, internalMutation, mutation, query, v } from 'svc'
import { internal } from '../_generated/api'
const clients = ['public'] as const

export const add = mutation({
  clients, auth: 'optional', arguments: { text: v.string() }, returns: v.id('notes'),
  errors: { EMPTY: 'invalid' },
  handler: async (ctx, { text }) => {
    if (text === '') return ctx.fail('EMPTY')
    const by = ctx.auth.identity?.subject ?? null
    return ctx.db.insert('notes', { text, at: ctx.now(), by })
  },
})
export const list = query({
  clients, returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ text }) => text),
})
export const now = query({ clients, returns: v.timestamp(), handler: (ctx) => ctx.now() })
export const random = mutation({
  clients, returns: v.object({ number: v.float64(), uuid: v.string(), at: v.timestamp() }),
  handler: (ctx) => ({ number: Math.random(), uuid: crypto.randomUUID(), at: ctx.now() }),
})
export const broken = query({
  clients, returns: v.null(),
  handler: () => {
    console.log('about to fail', { why: 'a test' })
    throw new RangeError('broken on purpose')
  },
})
export const whoAmI = query({
  clients, auth: 'user', returns: v.any(),
  handler: (ctx) => ({ ...ctx.auth.user, roles: [...ctx.auth.user.roles] }),
})
export const forServices = query({
  clients, auth: 'service', returns: v.string(), handler: (ctx) => ctx.auth.service.subject,
})
export const forGuests = query({
  clients, auth: 'guest', returns: v.string(), handler: (ctx) => ctx.auth.guest.subject,
})
export const join = mutation({
  clients, returns: v.string(),
  handler: (ctx) => ctx.auth.issueGuest({ expiresInSeconds: 60 }),
})
export const later = mutation({
  clients, arguments: { text: v.string(), minutes: v.int64() }, returns: v.string(),
  handler: (ctx, { text, minutes }) =>
    ctx.scheduler.runAfter({ minutes: Number(minutes) }, internal.notes.write, { text }),
})
export const write = internalMutation({
  arguments: { text: v.string() }, returns: v.null(),
  handler: async (ctx, { text }) => {
    if (text === 'fail') throw new Error('it does not write')
    await ctx.db.insert('notes', { text, at: ctx.now(), by: null })
    return null
  },
})
export const tick = internalMutation({
  returns: v.null(),
  handler: async (ctx) => {
    const at = ctx.now()
    await ctx.db.insert('notes', { text: 'tick ' + at, at, by: null })
    return null
  },
})
export const weather = action({
  clients, arguments: { host: v.string() }, returns: v.string(),
  uses: { network: ['weather.example'], secrets: ['WEATHER_KEY'], storage: 'write' },
  handler: async (ctx, { host }) => {
    const key = await ctx.config.secret('WEATHER_KEY')
    const units = await ctx.config.variable('UNITS')
    const response = await fetch('https://' + host + '/today', {
      method: 'POST', headers: { authorization: key }, body: JSON.stringify({ units }),
    })
    const body = new Uint8Array(await response.arrayBuffer())
    const id = await ctx.storage.put(body, { contentType: 'text/plain' })
    const bytes = await ctx.storage.read(id)
    return response.status + ' ' + new TextDecoder().decode(bytes) + ' ' + new Date().toISOString()
  },
})
export const draw = action({
  clients, returns: v.id('files'), uses: { storage: 'write' },
  handler: (ctx) => ctx.storage.put(new Uint8Array(1), { contentType: 'image/png' }),
})
export const show = query({
  clients, arguments: { file: v.id('files') }, returns: v.downloadUrl(),
  handler: (ctx, { file }) =>
    ctx.storage.createDownloadUrl(file, { expiresInSeconds: 60, inline: true }),
})
export const sweepLater = mutation({
  clients, returns: v.string(),
  handler: (ctx) => ctx.scheduler.runAfter({ hours: 2 }, internal.notes.sweep),
})
export const sweep = internalAction({
  returns: v.null(),
  handler: async (ctx) => {
    await ctx.runMutation(internal.notes.write, { text: 'swept' })
    return null
  },
})
`
const CRONS = `import { cronJobs } from 'svc'
import { internal } from './_generated/api'
export default cronJobs({
  hourly: { every: { hours: 1 }, function: internal.notes.tick },
  daily: { schedule: '30 7 * * *', timeZone: 'Europe/Rome', function: internal.notes.tick },
})
`

const MIGRATIONS = `import { migration } from 'svc'
export default {
  shout: migration({
    table: 'notes',
    each: (ctx, note) => {
      if (note.text === 'quiet') throw new Error('it is not said aloud')
      return note.text === 'LOUD' ? null : { text: note.text!.toUpperCase() }
    },
  }),
}
`

const EVENTS = `import { internalMutation, v } from 'svc'
const args = { delivery: v.httpDelivery() }
export const onEvent = internalMutation({
  arguments: args,
  handler: async (ctx, { delivery }) => {
    const { text } = delivery.json as { text: string }
    if (text === '') throw new RangeError('an empty note')
    await ctx.db.insert('notes', { text, at: delivery.receivedAt, by: null })
  },
})
export const onRequest = internalMutation({
  arguments: args,
  handler: async (ctx, { delivery }) => {
    const { method, path, headers, query, body } = delivery
    const text = JSON.stringify({ method, path, headers, query, bytes: body.length })
    await ctx.db.insert('notes', { text, at: delivery.receivedAt, by: null })
  },
})
`
const HTTP = `import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'
const handler = internal.events.onRequest
export default httpRoutes({
  stripe: hook({
    path: '/stripe', verify: signature.stripe({ secret: 'STRIPE' }), maximumBytes: 1000,
    once: (delivery) => (delivery.json as { id: string }).id,
    handler: internal.events.onEvent,
  }),
  mail: hook({ path: '/mail', verify: signature.standardWebhooks({ secret: 'MAIL' }), handler }),
  code: hook({
    path: '/code/:name', verify: signature.github({ secret: 'CODE' }), headers: ['x-more'], handler,
  }),
  sms: hook({ path: '/sms', verify: signature.twilio({ secret: 'SMS' }), handler }),
  chat: hook({ path: '/chat', verify: signature.slack({ secret: 'CHAT' }), handler }),
  own: hook({
    path: '/own', handler,
    verify: signature.hmac({ secret: 'OWN', header: 'x-sig', algorithm: 'sha1', encoding: 'hex' }),
  }),
  token: hook({ path: '/token', verify: signature.jwt({ issuer: 'https://issuer' }), handler }),
  open: hook({ path: '/', verify: 'none', handler }),
})
`
export const NOTES_FILES = {
  'migrations.ts': MIGRATIONS,
  'schema.ts': SCHEMA,
  'functions/notes.ts': NOTES,
  'functions/events.ts': EVENTS,
  'crons.ts': CRONS,
  'http.ts': HTTP,
}
