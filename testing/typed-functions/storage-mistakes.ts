/** Functions that store files, with the mistakes that the compiler must find, and no others. */
export const STORAGE_MISTAKES = `
import { action, mutation, query, v } from 'svc'

export const stores = action({
  uses: { storage: 'write' },
  arguments: { file: v.id('files') },
  returns: v.id('files'),
  handler: async (ctx, { file }) => {
    const made = await ctx.storage.createUpload({ contentType: 'image/png', maximumBytes: 10 })
    const found = await ctx.storage.get(made.uploadId)
    const { items } = await ctx.storage.list({ prefix: 'a/' })
    const size: bigint | undefined = found?.size ?? items[0]?.size
    // @ts-expect-error a file may have no key
    const key: string = items[0]!.key
    // @ts-expect-error bytes are no text
    await ctx.storage.put('text', { contentType: 'text/plain' })
    // @ts-expect-error a file has a type
    await ctx.storage.put(await ctx.storage.read(file), {})
    const { token } = await ctx.storage.createDownload(file, { fileName: key + String(size) })
    ctx.log.info(token === '' ? 'none' : 'one')
    return ctx.storage.put(new Uint8Array(1), { contentType: 'a/b', key: null })
  },
})
export const grants = action({
  uses: { storage: 'write' },
  returns: v.uploadGrant(),
  handler: (ctx) => ctx.storage.createUpload({ contentType: 'a/b', maximumBytes: 1 }),
})
export const fetches = action({
  uses: { storage: 'read' },
  arguments: { file: v.id('files') },
  returns: v.downloadGrant(),
  handler: (ctx, { file }) => ctx.storage.createDownload(file),
})
export const shows = query({
  arguments: { file: v.id('files') },
  returns: v.array(v.downloadUrl()),
  handler: async (ctx, { file }) => {
    // @ts-expect-error there is no such option
    await ctx.storage.createDownloadUrl(file, { Inline: true })
    // @ts-expect-error a signed URL has no token
    const { token } = await ctx.storage.createDownloadUrl(file)
    ctx.log.info(token)
    return [await ctx.storage.createDownloadUrl(file, { expiresInSeconds: 60, inline: true })]
  },
})
export const mistaken = action({
  uses: { storage: 'read' },
  arguments: { file: v.id('files') },
  returns: v.uploadGrant(),
  // @ts-expect-error a grant of another kind
  handler: (ctx, { file }) => ctx.storage.createDownload(file),
})
export const detaches = mutation({
  arguments: { file: v.id('files') },
  handler: async (ctx, { file }) => {
    const before = await ctx.db.get(file)
    await ctx.storage.delete(file)
    // @ts-expect-error only an Action makes upload grants
    ctx.storage.createUpload({ contentType: 'a/b', maximumBytes: 1 })
    // @ts-expect-error files have no table of their own
    ctx.db.table('files')
    return before?.sha256 ?? null
  },
})
export const looks = query({
  handler: (ctx) => {
    // @ts-expect-error a Query deletes nothing
    ctx.storage.delete
    return ctx.storage.list()
  },
})
`
