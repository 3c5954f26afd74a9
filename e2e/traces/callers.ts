/** Callers that sample their traces, and the Functions that they call. */
import { randomBytes } from 'node:crypto'

/** The span of every caller. */
export const PARENT = randomBytes(8).toString('hex')

/** Creates the trace of a request, with the headers that continue it. */
export function callerTrace() {
  const traceId = randomBytes(16).toString('hex')
  return { traceId, headers: { traceparent: `00-${traceId}-${PARENT}-01` } }
}

/** Returns a module of Functions; its Action calls the application origin at this port. */
export const tracedFunctions = (port: number) => `
  import { action, internalMutation, mutation, query, v } from 'svc'
  import { api, internal } from '../_generated/api'

  export const list = query({
    clients: ['confidential'],
    arguments: { of: v.string() },
    returns: v.int64(),
    handler: async (ctx) => BigInt((await ctx.db.table('channels').scan().collect()).length),
  })
  export const store = mutation({
    clients: ['confidential'],
    arguments: { name: v.string() },
    returns: v.string(),
    handler: async (ctx, { name }) => {
      await ctx.db.insert('channels', { name })
      console.log('stored')
      if (name.endsWith('-thrown')) throw new Error('no')
      return name
    },
  })
  export const later = mutation({
    clients: ['confidential'],
    arguments: { name: v.string() },
    returns: v.string(),
    handler: (ctx, { name }) =>
      ctx.scheduler.runAfter({ milliseconds: 1 }, internal.traced.work, { name }),
  })
  export const work = internalMutation({
    arguments: { name: v.string() },
    returns: v.null(),
    handler: async (ctx, { name }) => {
      await ctx.db.insert('channels', { name })
      return null
    },
  })
  export const relay = action({
    clients: ['confidential'],
    uses: { network: ['localhost:${port}'], secrets: ['API_KEY'] },
    arguments: { key: v.string(), name: v.string() },
    returns: v.string(),
    handler: async (ctx, { key, name }) => {
      await ctx.runMutation(api.traced.store, { name })
      const secret = await ctx.config.secret('API_KEY')
      await fetch('https://' + secret.toLowerCase() + '.test/' + name).catch(() => null)
      const body = JSON.stringify({
        version: 1,
        target: 'channel:production',
        function: 'traced.list',
        arguments: {
          type: 'object',
          value: [{ key: 'of', value: { type: 'string', value: name } }],
        },
      })
      const headers = { 'content-type': 'application/json', 'x-service-key': key }
      const url = 'http://localhost:${port}/v1/query'
      const response = await fetch(url, { method: 'POST', headers, body })
      await fetch(url + '?token=' + secret, {
        headers: { authorization: 'Bearer ' + secret },
      })
      return String(response.status)
    },
  })
`
