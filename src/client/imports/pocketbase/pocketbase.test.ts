/**
 * Backups that PocketBase made of one sample application: users, categories and posts with every
 * type of field (testing/imports/fixtures/make-pocketbase.mjs).
 */
import { Database } from 'bun:sqlite'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { converted } from '../../../../testing/imports/conversions.ts'
import { zipOf } from '../../../../testing/imports/zip-writer.ts'
import { openForeignDatabase } from '../../../system/foreign/foreign-databases.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { importedId } from '../documents/document-ids.ts'
import { openBackup } from './backups.ts'
import { indexOf } from './pocketbase-indexes.ts'

const FIXTURES = join(import.meta.dirname, '../../../../testing/imports/fixtures')
const SAMPLE = join(FIXTURES, 'pocketbase-0.36.zip')
/** Its records are only in the log, since nothing wrote them into the database yet. */
const EARLIER = join(FIXTURES, 'pocketbase-0.22.zip')
const open = (files: ExportFiles) => openBackup(files, async (path) => openForeignDatabase(path))

/** A copy of a data directory, whose database `change` may have open while it is copied. */
function dataDirectory(change: (database: Database) => void): string {
  const home = mkdtempSync(join(tmpdir(), 'svc-pocketbase-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const live = join(home, 'live')
  const copy = join(home, 'copy')
  mkdirSync(live)
  const database = new Database(join(live, 'data.db'), { create: true })
  database.run('pragma journal_mode = wal')
  database.run(
    'create table _collections (id, system, type, name, fields, indexes, listRule, options)',
  )
  change(database)
  cpSync(live, copy, { recursive: true })
  database.close()
  return copy
}

function addCollection(database: Database, name: string, fields: object[], columns: string): void {
  database.run('insert into _collections values (?, 0, ?, ?, ?, ?, null, ?)', [
    `id_${name}`,
    'base',
    name,
    JSON.stringify(fields),
    '[]',
    '{}',
  ])
  database.run(`create table ${name} (id text primary key, ${columns})`)
}

describe('a backup', () => {
  it('a backup becomes a schema with the declared types', async () => {
    const { schema } = await converted(SAMPLE, open)
    expect(schema).toMatchInlineSnapshot(`
      "import { defineSchema, table, v } from 'svc'

      export default defineSchema({
        blogPosts: table({
          importedId: v.string(),
          title: v.string(),
          body: v.string(),
          rating: v.float64(),
          votes: v.int64(),
          published: v.boolean(),
          contact: v.string(),
          link: v.string(),
          due: v.optional(v.timestamp()),
          state: v.optional(v.union(v.literal('draft'), v.literal('live'))),
          tags: v.array(v.union(v.literal('a'), v.literal('b'), v.literal('c'))),
          extra: v.any(),
          cover: v.optional(v.id('files')),
          attachments: v.array(v.id('files')),
          author: v.optional(v.id('users')),
          categories: v.array(v.id('categories')),
          place: v.object({ lon: v.float64(), lat: v.float64() }),
          created: v.timestamp(),
          updated: v.timestamp(),
        })
          .unique('byImportedId', ['importedId'])
          .index('idx_posts_state', ['state', 'votes']),

        categories: table({
          importedId: v.string(),
          name: v.string(),
          created: v.timestamp(),
          updated: v.timestamp(),
        })
          .unique('byImportedId', ['importedId'])
          .unique('idx_categories_name', ['name']),

        users: table({
          importedId: v.string(),
          email: v.string(),
          emailVisibility: v.boolean(),
          verified: v.boolean(),
          name: v.string(),
          avatar: v.optional(v.id('files')),
          created: v.timestamp(),
          updated: v.timestamp(),
        }).unique('byImportedId', ['importedId']),
      })
      "
    `)
  })

  it('a backup becomes documents that refer to each other and to files', async () => {
    const made = await converted(SAMPLE, open)
    const [first, second, third] = made.documents('blogPosts')
    const [ada] = made.documents('users')
    const categories = made.documents('categories')
    expect(first).toMatchObject({
      title: 'First',
      rating: 4.5,
      votes: 3,
      published: true,
      due: '2026-01-31T12:30:00.123000Z',
      state: 'live',
      tags: ['a', 'c'],
      extra: { nested: { deep: [1, 2.5, null, 'x'] }, type: 'int64', value: '5' },
      author: ada!._id,
      categories: [categories[0]!._id, categories[2]!._id],
      place: { lon: 13.4, lat: 52.5 },
    })
    expect(ada!._id).toBe(importedId('users', 'users', String(ada!.importedId)))
    expect(second).not.toHaveProperty('due')
    expect(second).toMatchObject({ title: 'Second', state: 'draft', extra: null, tags: [] })
    expect(third).toMatchObject({ votes: -7, rating: '1e+21', extra: [1, 'two', { three: 3 }] })
    const files = made.text('files/manifest.jsonl').trimEnd().split('\n')
    const byId = new Map(files.map((line) => [JSON.parse(line).fileId, JSON.parse(line)]))
    expect(byId.get(first!.cover)).toMatchObject({
      key: expect.stringMatching(/^pocketbase\/blog_posts\/[a-z0-9]{15}\/cover_[a-z0-9]+\.txt$/),
      contentType: 'text/plain; charset=utf-8',
      size: 18,
    })
    expect(made.text(`files/${first!.cover}`)).toBe('cover of the first')
    expect(first!.attachments).toHaveLength(2)
    expect(byId.get(ada!.avatar)).toMatchObject({ contentType: 'image/png' })
  })

  it('a backup of a version before 0.23 becomes the same tables', async () => {
    const earlier = await converted(EARLIER, open)
    const later = await converted(SAMPLE, open)
    const fields = (schema: string) => schema.split('\n').filter((line) => line.startsWith('    '))
    const added = fields(earlier.schema).filter((line) => !fields(later.schema).includes(line))
    expect(added).toEqual(['    username: v.string(),'])
    const comparable = (made: typeof later) =>
      made.documents('blogPosts').map(({ title, rating, votes, tags, extra, due, state }) => {
        return { title, rating, votes, tags, extra, due, state }
      })
    expect(comparable(earlier)).toEqual(comparable(later))
    expect(earlier.report.files).toEqual(later.report.files)
    expect(earlier.documents('blogPosts')[0]!.author).toBe(earlier.documents('users')[0]!._id)
  })

  it('a backup is reported with what has no counterpart', async () => {
    const { report } = await converted(SAMPLE, open)
    const counts = report.collections.map(({ source, documents }) => [source, documents])
    expect(counts).toEqual([
      ['blog_posts', 3],
      ['categories', 3],
      ['users', 2],
    ])
    const text = report.noCounterpart.join('\n')
    expect(text).toContain('users: passwords')
    expect(text).toContain('post_titles: a view')
    expect(text).toContain('blog_posts: listRule, viewRule, createRule')
    expect(text).toContain('CREATE INDEX `idx_live`')
    expect(text).toContain('_superusers: 1 records')
  })

  it('a backup gives the same bytes each time, without a password or a token', async () => {
    const first = (await converted(SAMPLE, open)).all()
    expect((await converted(SAMPLE, open)).all()).toEqual(first)
    const all = Object.values(first).join('\n')
    expect(all).toContain('ada@example.com')
    expect(all).not.toContain('$2a$')
    expect(all).not.toMatch(/tokenKey"|passwordHash"|test@example\.com/)
  })

  it('a backup of a running server has the records that are only in its log', async () => {
    const directory = dataDirectory((database) => {
      addCollection(database, 'notes', [{ name: 'text', type: 'text' }], 'text text')
      database.run("insert into notes values ('a', 'in the log')")
    })
    const made = await converted(directory, open)
    expect(made.documents('notes')).toMatchObject([{ importedId: 'a', text: 'in the log' }])
  })

  it('a backup with values that do not fit widens the types', async () => {
    const fields = [
      { name: 'whole', type: 'number', onlyInt: true },
      { name: 'state', type: 'select', maxSelect: 1, values: ['a'] },
      { name: 'day', type: 'date' },
      { name: 'one', type: 'relation', maxSelect: 1, collectionId: 'id_gone' },
      { name: 'picture', type: 'file', maxSelect: 1 },
    ]
    const directory = dataDirectory((database) => {
      addCollection(database, 'things', fields, 'whole, state, day, one, picture, stray')
      const insert = 'insert into things values (?, ?, ?, ?, ?, ?, ?)'
      database.run(insert, ['1', 5, 'a', '2026-01-31 00:00:00.000Z', 'x', 'gone.png', 7])
      database.run(insert, ['2', 2.5, 'else', 'someday', '', '', 'text'])
      database.run(insert, ['3', 9007199254740993n, '', '', '', '', null])
    })
    const made = await converted(directory, open)
    expect(made.documents('things')).toMatchObject([
      { whole: 5, state: 'a', one: 'x', picture: 'gone.png' },
      { whole: 2.5, state: 'else', day: 'someday', stray: 'text' },
      { whole: '9007199254740993' },
    ])
    expect(made.report.collections[0]).toMatchObject({ documents: 3, leftOut: 0 })
  })

  it('a backup whose collection is a view is rejected before it is read', async () => {
    const directory = dataDirectory((database) => {
      addCollection(database, 'loops', [], 'text')
      database.run('drop table loops')
      database.run(
        'create view loops as with recursive n(id) as (select 1 union all select id + 1 from n) ' +
          'select id from n',
      )
    })
    await expect(converted(directory, open)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: 'The collection loops has no table with an ID.',
    })
  })

  it.each([
    ['has no database', zipOf([{ name: 'a', content: '' }]), 'has no data.db'],
    ['is no SQLite', zipOf([{ name: 'data.db', content: 'x'.repeat(9_000) }]), 'no database of'],
    ['is empty', zipOf([{ name: 'data.db', content: '' }]), 'has no collections'],
  ])('a backup that %s is rejected', async (_, archive, message) => {
    await expect(converted(archive, open)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining(message),
    })
  })

  it('a backup that is damaged in the middle is rejected', { tags: ['slow'] }, async () => {
    const directory = dataDirectory((database) => {
      addCollection(database, 'notes', [{ name: 'text', type: 'text' }], 'text text')
      for (let i = 0; i < 500; i++) {
        database.run('insert into notes values (?, ?)', [`n${i}`, 'x'.repeat(200)])
      }
      database.run('pragma wal_checkpoint(truncate)')
    })
    const path = join(directory, 'data.db')
    const bytes = Buffer.from(await Bun.file(path).arrayBuffer())
    bytes.fill(0xff, 40_000, 60_000)
    writeFileSync(path, bytes)
    await expect(converted(directory, open)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
    })
  })
})

it('indexes with a condition, an expression or a collation are not converted', () => {
  expect(indexOf('CREATE UNIQUE INDEX `idx_a` ON `posts` (`a`, b DESC)')).toEqual({
    name: 'idx_a',
    fields: ['a', 'b'],
    unique: true,
  })
  expect(indexOf('create index if not exists "x" on [posts] (\n  `a`\n)')).toMatchObject({
    unique: false,
  })
  for (const sql of [
    "CREATE UNIQUE INDEX x ON posts (a) WHERE a != ''",
    'CREATE INDEX x ON posts (lower(a))',
    'CREATE INDEX x ON posts (a COLLATE NOCASE)',
    'DROP TABLE posts',
    '',
  ]) {
    expect(indexOf(sql), sql).toBeNull()
  }
})
