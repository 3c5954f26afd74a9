import { describe, expect, it } from 'vitest'
import { converted } from '../../../../testing/imports/conversions.ts'
import { firestoreExport } from '../../../../testing/imports/firestore-exports.ts'
import { zipOf } from '../../../../testing/imports/zip-writer.ts'
import { openFirebase } from './firebase.ts'

const typed = (__datatype__: string, value: unknown) => ({ __datatype__, value })
const EXPORT = {
  __collections__: {
    users: {
      ada: {
        name: 'Ada',
        joined: typed('timestamp', { _seconds: 1_769_862_600, _nanoseconds: 123_456_000 }),
        home: typed('geopoint', { _latitude: 52.5, _longitude: 13.4 }),
        key: typed('bytes', 'AAH/'),
        none: null,
        __collections__: {},
      },
    },
    rooms: {
      r1: {
        owner: typed('documentReference', 'users/ada'),
        lost: typed('documentReference', 'gone/g'),
        deep: { list: [{ when: typed('timestamp', { _seconds: -1, _nanoseconds: 500_000_000 }) }] },
        __collections__: {
          messages: {
            m1: { text: 'hi', __collections__: { reactions: { x: { emoji: ':)' } } } },
          },
        },
        title: 'after the messages',
      },
      empty: { __collections__: { messages: { m1: { text: 'ho' } } } },
    },
  },
}

const convertedOf = (json: unknown) => {
  const content = typeof json === 'string' ? json : JSON.stringify(json, null, 2)
  return converted(zipOf([{ name: 'firestore.json', content }]), openFirebase)
}

describe('a JSON export of Firestore', () => {
  it('an export becomes tables with types, references and parents', async () => {
    const made = await convertedOf(EXPORT)
    expect(made.schema).toMatchInlineSnapshot(`
      "import { defineSchema, table, v } from 'svc'

      export default defineSchema({
        rooms: table({
          importedId: v.string(),
          owner: v.optional(v.id('users')),
          lost: v.optional(v.string()),
          deep: v.optional(v.object({ list: v.array(v.object({ when: v.timestamp() })) })),
          title: v.optional(v.string()),
        }).unique('byImportedId', ['importedId']),

        roomsMessages: table({
          importedId: v.string(),
          text: v.string(),
          parent: v.id('rooms'),
        })
          .unique('byImportedId', ['importedId'])
          .index('byParent', ['parent']),

        roomsMessagesReactions: table({
          importedId: v.string(),
          emoji: v.string(),
          parent: v.id('roomsMessages'),
        })
          .unique('byImportedId', ['importedId'])
          .index('byParent', ['parent']),

        users: table({
          importedId: v.string(),
          name: v.string(),
          joined: v.timestamp(),
          home: v.object({ latitude: v.float64(), longitude: v.float64() }),
          key: v.bytes(),
          none: v.null(),
        }).unique('byImportedId', ['importedId']),
      })
      "
    `)
    const [ada] = made.documents('users')
    expect(ada).toMatchObject({
      importedId: 'ada',
      joined: '2026-01-31T12:30:00.123456Z',
      home: { latitude: 52.5, longitude: 13.4 },
      key: 'AAH_',
      none: null,
    })
    const [room, empty] = made.documents('rooms').toSorted((a, b) => {
      return String(b.importedId) < String(a.importedId) ? -1 : 1
    })
    expect(room).toMatchObject({
      importedId: 'r1',
      owner: ada!._id,
      lost: 'gone/g',
      deep: { list: [{ when: '1969-12-31T23:59:59.500000Z' }] },
      title: 'after the messages',
    })
    expect(empty).toMatchObject({ importedId: 'empty' })
    const messages = made.documents('roomsMessages')
    expect(messages).toMatchObject([
      { importedId: 'r1/m1', text: 'hi', parent: room!._id },
      { importedId: 'empty/m1', text: 'ho', parent: empty!._id },
    ])
    expect(made.documents('roomsMessagesReactions')).toMatchObject([
      { importedId: 'r1/m1/x', emoji: ':)', parent: messages[0]!._id },
    ])
    expect(made.report.collections.every(({ leftOut }) => leftOut === 0)).toBe(true)
  })

  it('a document with an unknown or a wrong type, or a hidden key, is left out alone', async () => {
    const wrong = [
      typed('vector', [1]),
      typed('timestamp', 7),
      typed('timestamp', { _seconds: 0.5, _nanoseconds: 0 }),
      typed('geopoint', { _latitude: '1', _longitude: 2 }),
      typed('documentReference', 'users'),
      typed('documentReference', 'users//a/b'),
      typed('bytes', '?'),
    ].map((value, i) => `"w${i}": ${JSON.stringify({ nested: [value] })}`)
    const hidden = ['"p": {"__proto__": {}}', '"d": {"x": 1, "x": 2}', '"good": {"x": {"y": -0}}']
    const text = `{"__collections__": {"users": {${[...wrong, ...hidden].join(',')}}}}`
    const made = await convertedOf(text)
    expect(made.report.collections).toMatchObject([{ documents: 1, leftOut: 9 }])
    expect(made.documents('users')).toMatchObject([{ importedId: 'good', x: { y: 0 } }])
    expect(made.report.collections[0]!.reasons).toContain(
      'Expected a known __datatype__ with its value.',
    )
  })

  it.each([
    ['no collections', {}, 'no __collections__ at its top'],
    ['a list', [], 'something else than an object'],
    [
      'a document at its top',
      { name: 'Ada', __collections__: {} },
      'fields at its top, such as name',
    ],
    ['a collection that is a list', { __collections__: { users: [{}] } }, '__collections__/users'],
    ['a document that is a text', { __collections__: { users: { a: 'b' } } }, 'users/a'],
    ['collections that are null', { __collections__: null }, 'something else than an object'],
    [
      'subcollections that are a list',
      { __collections__: { users: { a: { __collections__: [] } } } },
      'users/a/__collections__',
    ],
  ])('a file with %s is rejected', async (_, json, detail) => {
    await expect(convertedOf(json)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining(detail),
    })
  })

  it('a document whose fields are too large together is rejected', { tags: ['slow'] }, async () => {
    const field = `"x".."y"`.replace('..', ':').replace('"y"', `"${'y'.repeat(10 * 1024 * 1024)}"`)
    const fields = Array.from({ length: 7 }, (_, i) => field.replace('"x"', `"x${i}"`)).join(',')
    const text = `{"__collections__": {"users": {"a": {${fields}}}}}`
    await expect(convertedOf(text)).rejects.toMatchObject({
      detail: 'The document __collections__/users/a is too large.',
    })
  })

  it.each([
    ['a document', '{"__collections__":{"a":{"x":{"n":1},"x":{"n":2}}}}', '__collections__/a/x'],
    ['a collection', '{"__collections__":{"a":{},"a":{"x":{}}}}', '__collections__/a'],
    [
      'subcollections',
      '{"__collections__":{"a":{"x":{"__collections__":{"b":{}},"__collections__":{}}}}}',
      '__collections__/a/x/__collections__',
    ],
  ])('a key of %s that stands twice is rejected with its path', async (_, json, at) => {
    await expect(convertedOf(json)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: `firestore.json has a key twice, at ${at}.`,
    })
  })

  it('a document with a field twice is left out alone', async () => {
    const made = await convertedOf('{"__collections__":{"a":{"x":{"n":1,"n":2},"y":{"n":3}}}}')
    expect(made.documents('a')).toMatchObject([{ importedId: 'y', n: 3 }])
  })

  it('a managed export beside it is rejected', async () => {
    const files = [...firestoreExport([]), { name: 'firestore.json', content: '{}' }]
    await expect(converted(zipOf(files), openFirebase)).rejects.toMatchObject({
      detail: expect.stringContaining('has Firestore twice'),
    })
  })
})
