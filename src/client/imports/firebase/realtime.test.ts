import { describe, expect, it } from 'vitest'
import { converted } from '../../../../testing/imports/conversions.ts'
import { zipOf } from '../../../../testing/imports/zip-writer.ts'
import { openFirebase } from './firebase.ts'
import { parseTablePaths } from './table-paths.ts'

const CHAT = {
  users: {
    ada: { name: 'Ada', age: 36, roles: { admin: true }, tags: ['a', null, 'c'] },
    bob: { name: 'Bob', age: 36.5, '.priority': 3 },
  },
  names: { Ada: 'ada', Bob: 'bob' },
  levels: [null, { title: 'first' }, { title: 'second' }],
  messages: {
    r1: { '-NaaaaaaaaaaaaaaaaaB': { text: 'hi' }, '-NaaaaaaaaaaaaaaaaaC': { text: 'ho' } },
    r2: { '-NaaaaaaaaaaaaaaaaaB': { text: 'hi', parent: 'own' } },
    '.priority': 1,
  },
  version: 3,
}

const convertedOf = (json: unknown, paths: readonly string[] = [], name = 'database.json') => {
  const content = typeof json === 'string' ? json : JSON.stringify(json, null, 2)
  const tables = parseTablePaths(paths)
  return converted(zipOf([{ name, content }]), (files, progress) =>
    openFirebase(files, progress, tables),
  )
}

describe('a Realtime Database', () => {
  it('each child of a path at the top is a document', async () => {
    const made = await convertedOf(CHAT, [], 'my-app-default-rtdb-export.json')
    const tables = made.report.collections.map(({ source, table }) => [source, table])
    expect(tables).toEqual([
      ['Realtime Database: levels', 'levels'],
      ['Realtime Database: messages', 'messages'],
      ['Realtime Database: names', 'names'],
      ['Realtime Database: users', 'users'],
    ])
    expect(made.documents('users')).toMatchObject([
      { importedId: 'ada', name: 'Ada', roles: { admin: true }, tags: ['a', null, 'c'] },
      { importedId: 'bob', age: 36.5, priority: 3 },
    ])
    expect(made.documents('levels')).toMatchObject([
      { importedId: '1', title: 'first' },
      { importedId: '2', title: 'second' },
    ])
    expect(made.documents('messages')).toHaveLength(2)
    expect((await convertedOf(CHAT)).all()).toMatchObject({
      'schema.ts': made.schema,
      'data/users.jsonl': made.text('data/users.jsonl'),
    })
  })

  it('children that are no objects and values outside of tables are reported', async () => {
    const made = await convertedOf(CHAT)
    expect(made.documents('names')).toMatchObject([
      { importedId: 'Ada', value: 'ada' },
      { importedId: 'Bob', value: 'bob' },
    ])
    expect(made.report.conversions).toEqual([
      { what: 'children that are no objects to the field value', count: 2 },
    ])
    expect(made.report.noCounterpart).toContain(
      'Realtime Database: 2 values outside of tables, such as messages/.priority.',
    )
  })

  it.each([
    ['a table', '{"users":{"a":{"n":1},"b":{"n":2},"a":{"n":3}}}', 'users/a'],
    ['the top', '{"users":{"a":{"n":1}},"users":{"b":{"n":2}}}', 'users'],
  ])('a key that stands twice in %s is rejected with its path', async (_, json, at) => {
    await expect(convertedOf(json)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: `database.json has a key twice, at ${at}.`,
    })
  })

  it('a path of a table names deeper documents, with their parents', async () => {
    const made = await convertedOf(CHAT, ['messages/*', '/users/ada/roles'])
    expect(made.documents('messages')).toMatchObject([
      { importedId: 'r1/-NaaaaaaaaaaaaaaaaaB', text: 'hi', parent2: 'r1' },
      { importedId: 'r1/-NaaaaaaaaaaaaaaaaaC', text: 'ho', parent2: 'r1' },
      { importedId: 'r2/-NaaaaaaaaaaaaaaaaaB', text: 'hi', parent2: 'r2', parent: 'own' },
    ])
    expect(made.schema).toContain(".index('byParent', ['parent2'])")
    expect(made.documents('usersAdaRoles')).toMatchObject([{ importedId: 'admin', value: true }])
    expect(made.report.collections.map(({ table }) => table)).not.toContain('users')
    expect(made.report.collections.map(({ table }) => table)).toContain('names')
    // The other fields of ada, bob, the priority of messages, and the version.
    expect(made.report.noCounterpart.join('\n')).toContain('6 values outside of tables')
  })

  it('a document that breaks a rule is left out alone, as the file has it', async () => {
    const text = `{"users": {"a": {"__proto__": 1}, "b": {"x": 1, "x": 2}, "c": {"x": 1e999},
      "d": {"": 1, "constructor": "y", "e": -0}, "e": ${'['.repeat(300)}${']'.repeat(300)}}}`
    const made = await convertedOf(text)
    expect(made.report.collections).toMatchObject([{ documents: 1, leftOut: 4 }])
    expect(made.documents('users')).toMatchObject([
      { importedId: 'd', field: 1, constructor: 'y', e: 0 },
    ])
    expect(JSON.parse(made.text('left-out/users.jsonl').split('\n')[1]!)).toEqual({
      path: 'users/b',
      text: '{"x": 1, "x": 2}',
    })
  })

  it.each([
    ['that is null', 'null'],
    ['that is a list of scalars', '[1, 2]'],
    ['without documents', '{"users": {}}'],
  ])('a database %s is rejected with a next step', async (_, text) => {
    await expect(convertedOf(text)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: 'The export has no documents.',
      cause: { next: expect.stringContaining('Check that the database') },
    })
  })

  it.each([
    ['no JSON', 'hello', [], 'is no JSON'],
    ['a key with a slash', '{"a/b": {"c": 1}}', [], 'has a key with "/"'],
    ['nothing at the path', CHAT, ['rooms/*'], 'has no document at rooms/*'],
    [
      'too many fields',
      {
        messages: { r1: Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`k${i}`, 1])) },
      },
      [],
      'more than 1000 fields',
    ],
  ])('a file with %s is rejected', async (_, json, paths, detail) => {
    await expect(convertedOf(json, paths)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining(detail),
    })
  })

  it('a table whose documents stand lower is rejected with the option for them', async () => {
    const wide = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`-N${i}`, { a: 1 }]))
    await expect(convertedOf({ messages: { r1: wide } })).rejects.toMatchObject({
      cause: { next: expect.stringContaining('--table messages/*') },
    })
    const made = await convertedOf({ messages: { r1: wide } }, ['messages/*'])
    expect(made.report.collections).toMatchObject([{ table: 'messages', documents: 1_001 }])
  })

  it('two files, and a path without a file, are rejected', async () => {
    const two = ['database.json', 'app-export.json'].map((name) => ({ name, content: '{}' }))
    await expect(converted(zipOf(two), openFirebase)).rejects.toMatchObject({
      detail: 'app-export.json and database.json are both exports of a Realtime Database.',
    })
    const users = [{ name: 'users.json', content: '[]' }]
    await expect(
      converted(zipOf(users), (files, progress) =>
        openFirebase(files, progress, parseTablePaths(['a'])),
      ),
    ).rejects.toMatchObject({ detail: 'The export has no Realtime Database for --table.' })
  })
})

describe('a path of a table', () => {
  it.each(['', '/', 'a//b', '*', '*/a', 'a.b', 'a$b', 'a/[b]', 'a\u0000', 'a/'.repeat(40)])(
    'the path %j is rejected',
    (path) => {
      expect(() => parseTablePaths([path])).toThrow(
        expect.objectContaining({ code: 'CLIENT_USAGE', cause: expect.anything() }),
      )
    },
  )

  it.each([
    ['a', 'a'],
    ['a/*', 'a/b'],
    ['a/b', 'a/*/c'],
    ['a', 'a/b/c'],
    ['a/*/b', 'a/b/*'],
  ])('the paths %s and %s are rejected, since they share documents', (one, other) => {
    for (const paths of [
      [one, other],
      [other, one],
    ]) {
      expect(() => parseTablePaths(paths)).toThrow(
        expect.objectContaining({ detail: expect.stringContaining('the same documents') }),
      )
    }
    expect(parseTablePaths(['a/b', 'a/c/d', 'b/*'])).toHaveLength(3)
  })
})
