/** `ctx.storage` as authors use it: real runners, documents and bytes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { TypedId, Value, ValueObject } from '../../value/values.ts'

const SCHEMA = `tables({ posts: {
  fields: { file: { type: 'id', table: 'files' } }, indexes: [],
} })`

const ID = `{ arguments: { id: { type: 'id', table: 'files' } } }`
const FUNCTIONS = `
  put: action((ctx, { text, options }) =>
    ctx.storage.put(new TextEncoder().encode(text), { contentType: 'text/plain', ...options }),
    { arguments: { text: { type: 'string' }, options: { type: 'any' } },
      uses: { storage: 'write' }, returns: { type: 'id', table: 'files' } }),
  show: query((ctx, { id }) => ctx.storage.get(id), ${ID}),
  find: query((ctx, { upload }) => ctx.storage.get(upload),
    { arguments: { upload: { type: 'any' } } }),
  document: query((ctx, { id }) => ctx.db.get(id), ${ID}),
  list: query((ctx, { options }) => ctx.storage.list(options),
    { arguments: { options: { type: 'any' } } }),
  grant: query((ctx, { id, seconds }) =>
    ctx.storage.createDownload(id, { expiresInSeconds: seconds, fileName: 'a.txt' }),
    { arguments: { id: { type: 'id', table: 'files' }, seconds: { type: 'float64' } } }),
  sign: query((ctx, { id, options }) => ctx.storage.createDownloadUrl(id, options),
    { arguments: { id: { type: 'id', table: 'files' }, options: { type: 'any' } } }),
  signInAction: action((ctx, { id }) => ctx.storage.createDownloadUrl(id, { inline: true }),
    { arguments: { id: { type: 'id', table: 'files' } }, uses: { storage: 'read' } }),
  attach: mutation((ctx, { id }) => ctx.db.insert('posts', { file: id }), ${ID}),
  posts: query(async (ctx) => {
    const posts = await ctx.db.table('posts').scan().collect()
    return Promise.all(posts.map(async ({ file }) => (await ctx.storage.get(file))?.size ?? null))
  }),
  remove: mutation(async (ctx, { id }) => {
    await ctx.storage.delete(id)
    return ctx.storage.get(id)
  }, ${ID}),
  removeAndThrow: mutation(async (ctx, { id }) => {
    await ctx.storage.delete(id)
    throw new Error('no')
  }, ${ID}),
  read: action((ctx, { id }) => ctx.storage.read(id),
    { arguments: { id: { type: 'id', table: 'files' } }, uses: { storage: 'read' } }),
  inAction: action(async (ctx, { id }) => {
    const file = await ctx.storage.get(id)
    const { items } = await ctx.storage.list({ prefix: 'in-action/' })
    const { path } = await ctx.storage.createDownload(id)
    await ctx.storage.delete(id)
    return [file.size, items.length, path, await ctx.storage.get(id)]
  }, { arguments: { id: { type: 'id', table: 'files' } }, uses: { storage: 'write' } }),
  upload: action((ctx, { options }) => ctx.storage.createUpload(options),
    { arguments: { options: { type: 'any' } }, uses: { storage: 'write' } }),
  attempt: query(async (ctx, { method, args }) => {
    try { return await ctx.storage[method](...args) } catch (error) { return shown(error) }
  }, { arguments: { method: { type: 'string' }, args: { type: 'any' } } }),
  attemptInMutation: mutation(async (ctx, { method, args }) => {
    try { return await ctx.storage[method](...args) } catch (error) { return shown(error) }
  }, { arguments: { method: { type: 'string' }, args: { type: 'any' } } }),
  attemptNested: mutation(async (ctx, { id }) => {
    try { return await ctx.runQuery(ref('query', 'grant'), { id, seconds: 60 }) }
    catch (error) { return shown(error) }
  }, ${ID}),
  attemptInAction: action(async (ctx, { method, args }) => {
    try { return await ctx.storage[method](...args) } catch (error) { return shown(error) }
  }, { arguments: { method: { type: 'string' }, args: { type: 'any' } },
    uses: { storage: 'write' } }),
  putBytes: action(async (ctx, { length }) => {
    try {
      const id = await ctx.storage.put(new Uint8Array(length), { contentType: 'a/b' })
      return (await ctx.storage.read(id)).length
    } catch (error) { return shown(error) }
  }, { arguments: { length: { type: 'float64' } }, uses: { storage: 'write' } }),
  attemptReading: action(async (ctx, { method, args }) => {
    try { return await ctx.storage[method](...args) } catch (error) { return shown(error) }
  }, { arguments: { method: { type: 'string' }, args: { type: 'any' } },
    uses: { storage: 'read' } }),
  attemptWithout: action(async (ctx, { method, args }) => {
    try { return await ctx.storage[method](...args) } catch (error) { return shown(error) }
  }, { arguments: { method: { type: 'string' }, args: { type: 'any' } } }),
  attemptDb: mutation(async (ctx, { method, args }) => {
    try { return await ctx.db[method](...args) } catch (error) { return shown(error) }
  }, { arguments: { method: { type: 'string' }, args: { type: 'any' } } }),`

const SHOWN = 'const shown = ({ name, message, code }) => [name, message, code ?? null];\n'

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA, prelude: SHOWN })
})
afterAll(() => bench.close())

const object = (entries: Record<string, Value>): ValueObject => new Map(Object.entries(entries))
const put = async (text: string, options: Record<string, Value> = {}): Promise<TypedId> =>
  (await bench.call('put', { text, options: object(options) })) as TypedId
const show = async (id: TypedId) => (await bench.call('show', { id })) as ValueObject | null
const keysOf = async (options: Record<string, Value>) => {
  const page = (await bench.call('list', { options: object(options) })) as ValueObject
  const items = page.get('items') as readonly ValueObject[]
  return { page, keys: items.map((item) => item.get('key')) }
}

test('a file is a document with its metadata, for ctx.storage and for ctx.db', async () => {
  const id = await put('hello', { key: 'greeting' })
  const file = await show(id)
  expect(Object.fromEntries(file!)).toMatchObject({
    _id: id.id,
    bucket: 'default',
    key: 'greeting',
    contentType: 'text/plain',
    size: 5n,
    sha256: sha256Hex('hello'),
    uploadId: null,
  })
  expect(file!.get('_createdAt')).toBeTypeOf('bigint')
  expect(await bench.call('document', { id })).toEqual(file)
  expect(await bench.call('read', { id })).toEqual(new TextEncoder().encode('hello'))
})

test('Queries on files are cached, and current after every change', async () => {
  const id = await put('attached')
  for (let i = 0; i < 3; i++) await bench.call('posts')
  await bench.call('attach', { id })
  expect(await bench.call('posts')).toEqual([8n])
  for (let i = 0; i < 3; i++) await bench.call('posts')
  const { hits } = bench.engine.statistics().cache
  await bench.call('posts')
  expect(bench.engine.statistics().cache.hits).toBe(hits + 1)
  await expect(bench.call('removeAndThrow', { id })).rejects.toMatchObject({
    code: 'FUNCTION_FAILED',
  })
  expect(await bench.call('posts')).toEqual([8n])
  expect(await bench.call('remove', { id })).toBeNull()
  expect(await bench.call('posts')).toEqual([null])
})

test('files are listed in the order of their keys, and by the beginning of a key', async () => {
  const keys = ['b', 'a/2', 'a/1', 'a', 'a/\uffff', 'a/\u{10ffff}', 'a0', 'é']
  for (const key of keys) await put(`of ${key}`, { bucket: 'default', key: `list/${key}` })
  const all = await keysOf({ prefix: 'list/' })
  const ordered = ['a', 'a/1', 'a/2', 'a/\uffff', 'a/\u{10ffff}', 'a0', 'b', 'é']
  expect(all.keys).toEqual(ordered.map((key) => `list/${key}`))
  expect((await keysOf({ prefix: 'list/a/' })).keys).toEqual(
    ordered.slice(1, 5).map((key) => `list/${key}`),
  )
  const first = await keysOf({ prefix: 'list/', limit: 3 })
  expect(first.keys).toHaveLength(3)
  const cursor = first.page.get('cursor')!
  const rest = await keysOf({ prefix: 'list/', limit: 100, cursor })
  expect([...first.keys, ...rest.keys]).toEqual(all.keys)
  expect(rest.page.get('done')).toBe(true)
  await put('without a key')
  expect((await keysOf({})).keys).toContain(null)
  expect((await keysOf({ prefix: '' })).keys).not.toContain(null)
})

describe('a download grant', () => {
  const grant = async (id: TypedId, seconds: number) =>
    (await bench.call('grant', { id, seconds })) as ValueObject

  test('a download grant has a path, a token and an end', async () => {
    const id = await put('granted')
    const made = await grant(id, 60)
    expect(made.get('path')).toBe(`/v1/files/downloads/${id.id}`)
    expect(made.get('token')).toMatch(/^rk_dnl_v1_[A-Za-z0-9_-]+$/)
    expect(made.get('expiresAt')).toBeTypeOf('bigint')
  })

  test('a download grant in a result is cached, and made anew before it ends', async () => {
    const id = await put('cached')
    const long = async () => (await grant(id, 3_600)).get('token')
    await long()
    expect(await long()).toBe(await long())
    const short = async () => (await grant(id, 1)).get('token')
    await short()
    const token = await short()
    await expect.poll(short).not.toBe(token)
  })

  test('a Mutation makes no download grant, directly or by a Query that it calls', async () => {
    const id = await put('stored')
    const args = [id.id]
    const direct = await bench.call('attemptInMutation', { method: 'createDownload', args })
    expect(String(direct)).toContain('the result is stored'.slice(4))
    expect(String(await bench.call('attemptNested', { id }))).toContain('is stored')
  })
})

describe('a signed URL', () => {
  const sign = async (id: TypedId, options: Record<string, Value> = {}) =>
    (await bench.call('sign', { id, options: object(options) })) as ValueObject
  const SIGNED = /^\/v1\/files\/signed-downloads\/rk_url_v1_[A-Za-z0-9_-]+$/

  test('a signed URL has a path and an end, in a Query and in an Action', async () => {
    const id = await put('signed')
    for (const made of [await sign(id), await bench.call('signInAction', { id })]) {
      expect([...(made as ValueObject).keys()]).toEqual(['expiresAt', 'path'])
      expect((made as ValueObject).get('path')).toMatch(SIGNED)
    }
  })

  test('lives what was asked for, or up to a quarter less', async () => {
    const id = await put('lives')
    const before = BigInt(Date.now()) * 1000n
    const life = ((await sign(id, { expiresInSeconds: 3_600 })).get('expiresAt') as bigint) - before
    expect(life).toBeGreaterThan(2_700_000_000n - 1n)
    expect(life).toBeLessThan(3_600_000_000n + 60_000_000n)
  })

  test('a signed URL of another disposition, name or life is a different URL', async () => {
    const id = await put('differs')
    const options: Record<string, Value>[] = [
      {},
      { inline: true },
      { fileName: 'a' },
      { expiresInSeconds: 3_000 },
    ]
    const made = await Promise.all(options.map((each) => sign(id, each)))
    expect(new Set(made.map((each) => each.get('path'))).size).toBe(options.length)
  })

  test('a signed URL in a result is cached, and made anew before it ends', async () => {
    const id = await put('signed and cached')
    const { hits } = bench.engine.statistics().cache
    const short = async () => (await sign(id, { expiresInSeconds: 1 })).get('path')
    // On a slow machine each of several URLs ends before the next call.
    await expect
      .poll(async () => {
        await short()
        return bench.engine.statistics().cache.hits
      })
      .toBeGreaterThan(hits)
    const path = await short()
    await expect.poll(short).not.toBe(path)
  })

  test('a Mutation makes no signed URL', async () => {
    const args = [(await put('not in a Mutation')).id]
    const direct = await bench.call('attemptInMutation', { method: 'createDownloadUrl', args })
    expect(String(direct)).toContain('createDownloadUrl in a Mutation: its result is stored')
  })
})

test('an upload grant names its bounds, and its file is found by its ID', async () => {
  const options = object({ contentType: 'image/png', maximumBytes: 10, key: 'up' })
  const grant = (await bench.call('upload', { options })) as ValueObject
  expect(grant.get('token')).toMatch(/^rk_upl_v1_[A-Za-z0-9_-]{100,400}$/)
  expect(grant.get('maximumBytes')).toBe(10)
  const upload = grant.get('uploadId')!
  expect(grant.get('path')).toBe(`/v1/files/uploads/${upload}`)
  expect(await bench.call('find', { upload })).toBeNull()
})

test('an Action reads, lists, grants and deletes in transactions of their own', async () => {
  const id = await put('four', { key: 'in-action/1' })
  expect(await bench.call('inAction', { id })).toEqual([
    4n,
    1,
    `/v1/files/downloads/${id.id}`,
    null,
  ])
})

test('an Action stores at most 8 MiB at once', { tags: ['slow'] }, async () => {
  expect(await bench.call('putBytes', { length: 8 * 1024 ** 2 })).toBe(8 * 1024 ** 2)
  const tooLong = String(await bench.call('putBytes', { length: 8 * 1024 ** 2 + 1 }))
  expect(tooLong).toContain('make an upload grant for a longer file')
})

test('an object key that exists is replaced', async () => {
  const first = await put('one', { key: 'same' })
  const second = await put('two', { key: 'same' })
  expect(await show(first)).toBeNull()
  expect((await show(second))!.get('size')).toBe(3n)
})

const FILE = 'fil_01JZ0000000000000000000000'
const TYPE = object({ contentType: 'a/b' })
const UPLOAD = { contentType: 'a/b', maximumBytes: 1 }
test.each<[string, string, readonly Value[], string]>([
  ['attempt', 'delete', [FILE], 'make the Function a mutation'],
  ['attempt', 'createUpload', [object(UPLOAD)], 'only an Action'],
  ['attempt', 'put', [new Uint8Array(1), TYPE], 'only an Action'],
  ['attempt', 'read', [FILE], 'only an Action'],
  ['attempt', 'get', ['posts_01JZ0000000000000000000000'], 'needs the ID of a file'],
  ['attempt', 'createDownload', [FILE], 'there is no file'],
  ['attempt', 'createDownload', [FILE, object({ expiresInSeconds: 3_601 })], '1 to 3600'],
  ['attempt', 'createDownload', [FILE, object({ fileName: 'a/b' })], 'fileName'],
  ['attempt', 'createDownload', [FILE, object({ fileName: 'a\r\nX: y' })], 'fileName'],
  ['attempt', 'createDownload', [FILE, object({ fileName: 'a\u202etxt.exe' })], 'fileName'],
  ['attempt', 'createDownload', [FILE, object({ fileName: '\u2066a\u2069' })], 'fileName'],
  ['attempt', 'createDownload', [FILE, object({ filename: 'a' })], 'no option "filename"'],
  ['attempt', 'createDownload', [FILE, object({ fileName: 'é'.repeat(128) })], 'fileName'],
  ['attempt', 'createDownloadUrl', [FILE], 'createDownloadUrl: there is no file'],
  ['attempt', 'createDownloadUrl', [FILE, object({ expiresInSeconds: 3_601 })], '1 to 3600'],
  ['attempt', 'createDownloadUrl', [FILE, object({ expiresInSeconds: 0 })], '1 to 3600'],
  ['attempt', 'createDownloadUrl', [FILE, object({ fileName: 'a/b' })], 'fileName'],
  ['attempt', 'createDownloadUrl', [FILE, object({ inline: 'yes' })], 'inline is true or false'],
  ['attempt', 'createDownloadUrl', [FILE, object({ Inline: true })], 'no option "Inline"'],
  ['attemptWithout', 'createDownloadUrl', [FILE], 'add uses: { storage: "read" }'],
  ['attempt', 'list', [object({ limit: 0 })], '1 to 1000'],
  ['attemptInMutation', 'delete', [FILE], 'there is no document'],
  ['attemptInMutation', 'put', [new Uint8Array(1), TYPE], 'only an Action'],
  ['attemptInAction', 'put', [new Uint8Array(1), object({ contentType: 'x' })], 'media type'],
  ['attemptInAction', 'put', ['text', TYPE], 'Uint8Array'],
  ['attemptInAction', 'put', [new Uint8Array(1)], 'options'],
  ['attemptInAction', 'read', [FILE], 'FILE_NOT_FOUND'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, bucket: 'other' })], 'FILE_NOT_FOUND'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, bucket: '../x' })], 'bucket has'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, key: '' })], 'key has'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, key: 'a\0b' })], 'key has'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, key: 'é'.repeat(513) })], 'key has'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, maxBytes: 1 })], 'no option "maxBytes"'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, maximumBytes: -1 })], 'maximumBytes'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, maximumBytes: 6e9 })], 'maximumBytes'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, contentType: 'a/b\r\nX: y' })], 'media'],
  ['attemptInAction', 'createUpload', [object({ ...UPLOAD, expiresInSeconds: 86_401 })], '86400'],
  ['attemptReading', 'put', [new Uint8Array(1), TYPE], 'add uses: { storage: "write" }'],
  ['attemptReading', 'createUpload', [object(UPLOAD)], 'add uses: { storage: "write" }'],
  ['attemptReading', 'delete', [FILE], 'add uses: { storage: "write" }'],
  ['attemptWithout', 'get', [FILE], 'add uses: { storage: "read" }'],
  ['attemptWithout', 'list', [], 'add uses: { storage: "read" }'],
  ['attemptWithout', 'read', [FILE], 'add uses: { storage: "read" }'],
  ['attemptWithout', 'createDownload', [FILE], 'add uses: { storage: "read" }'],
  ['attemptDb', 'insert', ['files', object({})], 'declares no table'],
  ['attemptDb', 'insert', ['fil', object({})], 'use ctx.storage'],
  ['attemptDb', 'insert', ['upl', object({})], 'declares no table'],
  ['attemptDb', 'patch', [FILE, object({ key: 'x' })], 'use ctx.storage'],
  ['attemptDb', 'replace', [FILE, object({ key: 'x' })], 'use ctx.storage'],
  ['attemptDb', 'get', ['upl_01JZ0000000000000000000000'], 'declares no table'],
  ['attemptDb', 'delete', ['upl_01JZ0000000000000000000000'], 'declares no table'],
])('%s of %s(%o) tells its author: %s', async (name, method, args, message) => {
  expect(String(await bench.call(name, { method, args }))).toContain(message)
})
