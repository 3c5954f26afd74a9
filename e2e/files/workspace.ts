/** A Workspace whose Functions store files, and what an application does with them. */
import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Application,
  action,
  fields,
  id,
  int64,
  type Json,
  mutation,
  query,
  string,
} from '../application.ts'

const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  posts: table({ text: v.string(), attachment: v.id('files') }),
})
`

const FUNCTIONS = `import { action, type Id, mutation, query, v } from 'svc'

export const grantUpload = action({
  clients: ['confidential'],
  uses: { storage: 'write' },
  arguments: { contentType: v.string(), maximumBytes: v.int64(), key: v.nullable(v.string()) },
  handler: (ctx, { contentType, maximumBytes, key }) =>
    ctx.storage.createUpload({ contentType, maximumBytes: Number(maximumBytes), key }),
})

export const find = query({
  clients: ['confidential'],
  arguments: { upload: v.any() },
  handler: async (ctx, { upload }) => (await ctx.storage.get(upload as Id<'files'>))?._id ?? null,
})

export const attach = mutation({
  clients: ['confidential'],
  arguments: { text: v.string(), file: v.id('files') },
  returns: v.id('posts'),
  handler: async (ctx, { text, file }) => {
    if ((await ctx.storage.get(file)) === null) throw new Error('no such file')
    return ctx.db.insert('posts', { text, attachment: file })
  },
})

export const list = query({
  clients: ['confidential'],
  handler: async (ctx) => {
    const posts = await ctx.db.table('posts').scan().collect()
    return Promise.all(
      posts.map(async ({ text, attachment }) => {
        const file = await ctx.storage.get(attachment)
        return { text, size: file === null ? null : file.size, sha256: file?.sha256 ?? null }
      }),
    )
  },
})

export const objects = query({
  clients: ['confidential'],
  arguments: { bucket: v.string() },
  handler: async (ctx, { bucket }) => {
    const { items } = await ctx.storage.list({ bucket })
    return items.map(({ key, etag, sha256 }) => ({ key, etag: etag ?? null, sha256 }))
  },
})

export const grantDownload = action({
  clients: ['confidential'],
  uses: { storage: 'read' },
  arguments: { file: v.id('files'), fileName: v.string() },
  handler: (ctx, { file, fileName }) => ctx.storage.createDownload(file, { fileName }),
})

export const sign = query({
  clients: ['confidential'],
  arguments: { file: v.id('files') },
  returns: v.downloadUrl(),
  handler: (ctx, { file }) =>
    ctx.storage.createDownloadUrl(file, { expiresInSeconds: 3_600, inline: true }),
})

export const remove = mutation({
  clients: ['confidential'],
  arguments: { file: v.id('files') },
  handler: async (ctx, { file }) => {
    await ctx.storage.delete(file)
    for await (const post of ctx.db.table('posts').scan()) {
      if (post.attachment === file) await ctx.db.delete(post._id)
    }
  },
})
`

/** Replaces the Functions of a new Workspace. */
export function writeFileFunctions(workspace: string): void {
  for (const name of readdirSync(join(workspace, 'functions'))) {
    writeFileSync(join(workspace, 'functions', name), 'export {}\n')
  }
  mkdirSync(join(workspace, 'functions'), { recursive: true })
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  appendFileSync(join(workspace, 'functions/uploads.ts'), FUNCTIONS)
}

export interface Grant {
  readonly path: string
  readonly token: string
  readonly uploadId: string | null
}

function grantOf(result: Json): Grant {
  const { path, token, uploadId } = fields(result)
  return { path: path.value, token: token.value, uploadId: uploadId?.value ?? null }
}

/** Calls the Action that grants an upload. Throws if it fails. */
export async function grantUpload(
  app: Application,
  maximumBytes: number,
  key: string | null = null,
): Promise<Grant> {
  const reply = await action(app, {
    function: 'uploads.grantUpload',
    arguments: {
      contentType: string('application/octet-stream'),
      maximumBytes: int64(maximumBytes),
      key: key === null ? { type: 'null' } : string(key),
    },
  })
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
  return grantOf(reply.body.result)
}

export async function grantDownload(app: Application, fileId: string): Promise<Grant> {
  const reply = await action(app, {
    function: 'uploads.grantDownload',
    arguments: { file: id(fileId), fileName: string('film.bin') },
  })
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
  return grantOf(reply.body.result)
}

/** Returns the path of a signed URL. Throws if the call fails. */
export async function signDownload(app: Application, fileId: string): Promise<string> {
  const reply = await query(app, { function: 'uploads.sign', arguments: { file: id(fileId) } })
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
  return fields(reply.body.result).path.value
}

export function removeFile(app: Application, fileId: string) {
  return mutation(app, { function: 'uploads.remove', arguments: { file: id(fileId) } })
}
