/**
 * Classes that Parse Server 8.6 with PostgreSQL exported of one sample application
 * (testing/imports/fixtures/make-parse.mjs).
 */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { converted } from '../../../../testing/imports/conversions.ts'
import { type ZipFile, zipOf } from '../../../../testing/imports/zip-writer.ts'
import { itemsOf } from '../archives/json-items.ts'
import { EXPORT_LINE_BYTES_MAX } from '../archives/lines.ts'
import { openParse } from './parse.ts'

const SAMPLE = join(import.meta.dirname, '../../../../testing/imports/fixtures/parse-8.6.zip')

const classes = (files: Record<string, unknown>, more: readonly ZipFile[] = []) =>
  zipOf([
    ...Object.entries(files).map(([name, json]) => {
      return { name: `${name}.json`, content: JSON.stringify(json) }
    }),
    ...more,
  ])
const TIMES = { createdAt: '2026-01-31T12:00:00.000Z', updatedAt: '2026-01-31T12:00:00.000Z' }

describe('an export', () => {
  it('an export becomes a schema with the declared types', async () => {
    const { schema } = await converted(SAMPLE, openParse)
    expect(schema).toMatchInlineSnapshot(`
      "import { defineSchema, table, v } from 'svc'

      export default defineSchema({
        blogPost: table({
          importedId: v.string(),
          createdAt: v.timestamp(),
          updatedAt: v.timestamp(),
          ACL: v.optional(v.any()),
          due: v.optional(v.timestamp()),
          data: v.optional(v.bytes()),
          cover: v.optional(v.id('files')),
          extra: v.optional(v.any()),
          likes: v.optional(v.float64()),
          mixed: v.optional(v.array(v.union(v.float64(), v.timestamp(), v.string()))),
          place: v.optional(v.object({ latitude: v.float64(), longitude: v.float64() })),
          score: v.optional(v.float64()),
          title: v.string(),
          author: v.optional(v.id('user')),
          related: v.optional(v.array(v.any())),
          published: v.optional(v.boolean()),
        }).unique('byImportedId', ['importedId']),

        comment: table({
          importedId: v.string(),
          createdAt: v.timestamp(),
          updatedAt: v.timestamp(),
          ACL: v.optional(v.any()),
          post: v.id('blogPost'),
          text: v.string(),
        }).unique('byImportedId', ['importedId']),

        empty: table({
          importedId: v.string(),
          createdAt: v.timestamp(),
          updatedAt: v.timestamp(),
          ACL: v.optional(v.any()),
          note: v.string(),
        }).unique('byImportedId', ['importedId']),

        tag: table({
          importedId: v.string(),
          createdAt: v.timestamp(),
          updatedAt: v.timestamp(),
          ACL: v.optional(v.any()),
          name: v.string(),
        }).unique('byImportedId', ['importedId']),

        role: table({
          importedId: v.string(),
          createdAt: v.timestamp(),
          updatedAt: v.timestamp(),
          ACL: v.optional(v.any()),
          name: v.string(),
        }).unique('byImportedId', ['importedId']),

        user: table({
          importedId: v.string(),
          createdAt: v.timestamp(),
          updatedAt: v.timestamp(),
          ACL: v.optional(v.any()),
          username: v.string(),
          email: v.string(),
          emailVerified: v.optional(v.boolean()),
          phone: v.string(),
        }).unique('byImportedId', ['importedId']),

        roleRoles: table({
          importedId: v.string(),
          owner: v.id('role'),
          related: v.id('role'),
        })
          .unique('byImportedId', ['importedId'])
          .unique('byOwner', ['owner', 'related'])
          .index('byRelated', ['related']),

        blogPostTags: table({
          importedId: v.string(),
          owner: v.id('blogPost'),
          related: v.id('tag'),
        })
          .unique('byImportedId', ['importedId'])
          .unique('byOwner', ['owner', 'related'])
          .index('byRelated', ['related']),

        roleUsers: table({
          importedId: v.string(),
          owner: v.id('role'),
          related: v.id('user'),
        })
          .unique('byImportedId', ['importedId'])
          .unique('byOwner', ['owner', 'related'])
          .index('byRelated', ['related']),
      })
      "
    `)
  })

  it('an export becomes objects that refer to objects, files and members', async () => {
    const made = await converted(SAMPLE, openParse)
    const [first, second, third] = made.documents('blogPost')
    const [ada, bob] = made.documents('user')
    const tags = made.documents('tag')
    const [file] = made.text('files/manifest.jsonl').trimEnd().split('\n')
    expect(first).toMatchObject({
      title: 'First',
      likes: 3,
      score: 4.5,
      published: true,
      author: ada!._id,
      due: '2026-01-31T12:30:00.123000Z',
      place: { latitude: 52.5, longitude: 13.4 },
      data: 'AP8',
      cover: JSON.parse(file!).fileId,
      mixed: [1, 'two', expect.anything()],
    })
    expect(first).not.toHaveProperty('tags')
    expect(made.text(JSON.parse(file!).path)).toBe('cover of the first')
    expect(second).toMatchObject({ likes: -7, author: bob!._id })
    expect(third).toMatchObject({ title: 'Third | with *marks*', related: [] })
    expect(made.documents('comment')).toMatchObject([{ text: 'hi', post: first!._id }])
    const members = made.documents('blogPostTags')
    expect(members.map(({ owner }) => owner)).toEqual([first!._id, first!._id])
    expect(members.map(({ related }) => related).sort()).toEqual(tags.map(({ _id }) => _id).sort())
    expect(made.documents('roleUsers')).toMatchObject([{ related: ada!._id }])
  })

  it('an export is reported with what has no counterpart', async () => {
    const made = await converted(SAMPLE, openParse)
    const counts = made.report.collections.map(({ table, documents }) => [table, documents])
    expect(Object.fromEntries(counts)).toEqual({
      blogPost: 3,
      comment: 1,
      empty: 0,
      tag: 2,
      role: 1,
      user: 2,
      blogPostTags: 2,
      roleRoles: 0,
      roleUsers: 1,
    })
    const text = made.report.noCounterpart.join('\n')
    expect(text).toContain('_User: passwords')
    expect(text).toContain('_Session: objects of Parse itself')
    expect(text).toContain('ACL: the field is kept')
    expect((await converted(SAMPLE, openParse)).all()).toEqual(made.all())
  })

  it('an export has no secret of a user, not even in what is left out', async () => {
    const secrets = {
      password: 'top-secret-1',
      _hashed_password: 'top-secret-2',
      sessionToken: 'top-secret-3',
      authData: { facebook: { token: 'top-secret-4' } },
    }
    const users = [
      { objectId: 'a', ...TIMES, username: 'x', ...secrets },
      { objectId: 'b', ...TIMES, broken: { __type: 'Unheard' }, ...secrets },
      { username: 'without an ID', ...secrets },
    ]
    const made = await converted(classes({ _User: users }), openParse)
    expect(made.documents('user')).toHaveLength(1)
    expect(made.report.collections[0]).toMatchObject({ documents: 1, leftOut: 2 })
    expect(Object.values(made.all()).join('\n')).not.toContain('top-secret')
  })

  it('an export without a schema infers types and says what is lost', async () => {
    const post = {
      objectId: 'p',
      ...TIMES,
      author: { __type: 'Pointer', className: '_User', objectId: 'u' },
      editor: { __type: 'Object', className: '_User', objectId: 'u', username: 'x' },
      image: { __type: 'File', name: 'a.png', url: 'https://example.com/a.png' },
      outside: { __type: 'Pointer', className: 'Gone', objectId: 'g' },
      tags: { __type: 'Relation', className: 'Tag' },
      flag: true,
    }
    const schema = [{ className: 'Post', fields: { tags: { type: 'Relation' } } }]
    const users = { results: [{ objectId: 'u', ...TIMES }], count: 1 }
    const archive = classes({ Post: [post], _User: users, _SCHEMA: schema })
    const made = await converted(archive, openParse)
    const [{ _id }] = made.documents('user') as [{ _id: string }]
    expect(made.documents('post')).toMatchObject([
      {
        author: _id,
        editor: _id,
        image: { name: 'a.png', url: 'https://example.com/a.png' },
        outside: 'g',
        flag: true,
      },
    ])
    expect(made.report.noCounterpart.join('\n')).toContain('Post.tags: a relation')
    expect(made.report.conversions.map(({ what }) => what)).toEqual([
      'objects that were included in others to references',
      'files that the export does not have to objects with name and url',
    ])
  })

  it.each([
    ['has no class', zipOf([{ name: 'a.txt', content: '' }]), 'has no file CLASS.json'],
    ['is a dump', classes({ Post: [{ _id: 'x', _p_author: '_User$y' }] }), 'is a dump'],
    ['is no list', classes({ Post: { objectId: 'x' } }), 'neither a list nor'],
    ['does not end', zipOf([{ name: 'Post.json', content: '[{"objectId":"x"}' }]), 'does not end'],
    [
      'has a class twice',
      zipOf([
        { name: 'Post.json', content: '[]' },
        { name: 'a/Post.json', content: '[]' },
      ]),
      'the class Post twice',
    ],
  ])('an export that %s is rejected', async (_, archive, message) => {
    await expect(converted(archive, openParse)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining(message),
    })
  })
})

describe('a list of JSON', () => {
  const split = async (...chunks: (string | Uint8Array)[]) => {
    const stream = (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk)
    })()
    const found: string[] = []
    for await (const item of itemsOf('x', stream)) found.push(Buffer.from(item).toString().trim())
    return found
  }
  it('a list of JSON is split at any chunk, also with brackets in texts', async () => {
    const items = ['{"a":"]},{\\""}', '{"b":[1,[2],{"c":"\\\\"}]}', '{"ü":"{"}']
    const texts = [
      `{ "results" : [ ${items.join(' , ')} ] , "count": 3 }`,
      `\n[${items.join(',')}]`,
    ]
    for (const text of texts) {
      const bytes = Buffer.from(text)
      for (let at = 0; at <= bytes.length; at++) {
        expect(await split(bytes.subarray(0, at), bytes.subarray(at))).toEqual(items)
      }
    }
    expect(await split('[]')).toEqual([])
    expect(await split('\ufeff[{}]')).toEqual(['{}'])
  })
  it('a list of JSON with an item that is too long is rejected', async () => {
    const chunk = new Uint8Array(EXPORT_LINE_BYTES_MAX / 2 + 1).fill(65)
    await expect(split('["', chunk, chunk)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
    })
  })
})
