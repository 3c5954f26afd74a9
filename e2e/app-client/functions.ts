/** Functions that the client of an application calls beside those of the chat template. */
export const FUNCTIONS = `import { action, query, v } from 'svc'

const clients = ['public', 'confidential'] as const

/** A page of a channel, newest first. */
export const page = query({
  clients,
  arguments: {
    channel: v.id('channels'),
    cursor: v.nullable(v.string()),
    limit: v.int64({ minimum: 1n, maximum: 100n }),
    until: v.optional(v.string()),
  },
  handler: (ctx, { channel, cursor, limit, until = null }) =>
    ctx.db
      .table('messages')
      .index('byChannel', (q) => q.eq('channel', channel))
      .order('desc')
      .paginate({ cursor, limit: Number(limit), until }),
})

export const grantUpload = action({
  clients,
  uses: { storage: 'write' },
  arguments: { maximumBytes: v.int64() },
  returns: v.uploadGrant(),
  handler: (ctx, { maximumBytes }) =>
    ctx.storage.createUpload({ contentType: 'text/plain', maximumBytes: Number(maximumBytes) }),
})

export const grantDownload = action({
  clients,
  uses: { storage: 'read' },
  arguments: { file: v.id('files') },
  returns: v.downloadGrant(),
  handler: (ctx, { file }) => ctx.storage.createDownload(file),
})

/** Stores a picture of one pixel, and a URL that shows it. */
export const picture = action({
  clients,
  uses: { storage: 'write' },
  returns: v.downloadUrl(),
  handler: async (ctx) => {
    const bytes = Uint8Array.fromBase64('R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=')
    const file = await ctx.storage.put(bytes, { contentType: 'image/gif' })
    return ctx.storage.createDownloadUrl(file, { inline: true })
  },
})

/** The signed-in user, and how many channels there are. */
export const me = query({
  clients,
  auth: 'user',
  returns: v.object({ subject: v.string(), channels: v.int64() }),
  handler: async (ctx) => ({
    subject: ctx.auth.user.subject,
    channels: BigInt((await ctx.db.table('channels').scan().collect()).length),
  }),
})
`
