import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { converted } from '../../../../testing/imports/conversions.ts'
import {
  type ConvexTable,
  type ConvexValue,
  convexExport,
  convexId,
  convexLines,
  STORAGE_NUMBER,
} from '../../../../testing/imports/convex-exports.ts'
import { fieldsIn } from '../../../../testing/imports/schema-fields.ts'
import { zipOf } from '../../../../testing/imports/zip-writer.ts'
import { fc } from '../../../../testing/properties.ts'
import { plainReader } from '../../../value/plain.ts'
import { isJsonObject, parseStrictJson, ROUNDED } from '../../../value/strict-json.ts'
import { type Value, type ValueObject, valueEquals } from '../../../value/values.ts'
import { importedId } from '../documents/document-ids.ts'
import { openConvex } from './convex.ts'
import { encodeConvexId, tableNumberOf } from './convex-ids.ts'
import { fieldShapes, itemShapes, parseShape, textKindOf } from './convex-shapes.ts'

const USERS = 10_001
const MESSAGES = 10_002
const user = convexId(USERS, 1)
const other = convexId(USERS, 2)
const picture = convexId(STORAGE_NUMBER, 1)

const users: ConvexTable = {
  name: 'users',
  number: USERS,
  shape: '{"_creationTime": normalfloat64, "_id": id<10001>, "name": string, "karma": int64}',
  documents: [
    [user, { _creationTime: 1737061700000.125, name: 'Ada', karma: 9007199254740993n }],
    [other, { _creationTime: 1737061700001, name: '123', karma: -5n }],
  ],
}
const messages: ConvexTable = {
  name: 'chat_messages',
  number: MESSAGES,
  shape:
    '{"_creationTime": normalfloat64, "_id": id<10002>, "author": id<10001>, "body": string, ' +
    '"picture"?: id<10900>, "key": bytes | null, "score": normalfloat64 | inf}',
  documents: [
    [
      convexId(MESSAGES, 1),
      { _creationTime: 1, author: user, body: 'hi', picture, key: null, score: 1.5 },
    ],
    [
      convexId(MESSAGES, 2),
      {
        _creationTime: 2,
        author: other,
        body: user,
        key: Uint8Array.of(0, 255),
        score: Number.POSITIVE_INFINITY,
      },
    ],
  ],
}
const files = [{ id: picture, contentType: 'text/plain', content: 'a picture' }]

describe('the IDs of Convex', () => {
  it('IDs of Convex are the ones that Convex encodes', () => {
    const internal = Uint8Array.from({ length: 16 }, () => 251)
    for (let i = 1; i < 16; i++) internal[i] = (internal[i - 1]! * 251) & 255
    expect(encodeConvexId(1017, internal)).toBe('z43zp6c3e75gkmz1kfwj6mbbx5sw281h')
    expect(tableNumberOf('z43zp6c3e75gkmz1kfwj6mbbx5sw281h')).toBe(1017)
  })

  it('IDs of Convex are told from other texts by their checksum', () => {
    for (const table of [1, 127, 128, 16_384, 2 ** 31]) {
      const id = convexId(table, 7)
      expect(tableNumberOf(id)).toBe(table)
      const changed = (id[5] === 'a' ? 'b' : 'a') + id.slice(1)
      expect(tableNumberOf(changed)).not.toBe(table)
    }
    expect(tableNumberOf('sssswsgggggggggsgcsssfafffsffks')).toBeNull()
    expect(tableNumberOf('')).toBeNull()
  })
})

describe('the shape of a table', () => {
  const kindAt = (text: string, ...path: (string | number)[]) => {
    let shapes = parseShape(text)
    for (const part of path) {
      shapes = typeof part === 'number' ? itemShapes(shapes) : fieldShapes(shapes, part)
    }
    return textKindOf(shapes)
  }
  it('the shape of a table says what a text is where there is one possibility', () => {
    expect(kindAt('{"a": int64 | null, "b"?: array<bytes>}', 'a')).toBe('int64')
    expect(kindAt('{"a": int64 | null, "b"?: array<bytes>}', 'b', 0)).toBe('bytes')
    expect(kindAt('record<field_name, int64>', 'anything')).toBe('int64')
    expect(kindAt('{"a": "x" | "y" | id<3> | field_name}', 'a')).toBe('string')
    expect(kindAt('{"a": inf | -inf | -0 | normalfloat64}', 'a')).toBe('infinite')
    expect(
      kindAt('{"location": {"city": string} | {"city": string, "n": int64}}', 'location', 'n'),
    ).toBe('int64')
  })
  it('the shape of a table says nothing where there are several', () => {
    expect(kindAt('{"a": int64 | string}', 'a')).toBeNull()
    expect(kindAt('{"a": float64}', 'a')).toBeNull()
    expect(kindAt('{"a": NaN}', 'a')).toBeNull()
    expect(kindAt('{"a": unknown}', 'a', 'b', 0)).toBeNull()
    expect(kindAt('{"a": int64} | {"a": bytes}', 'a')).toBeNull()
    expect(kindAt('set<int64>', 0)).toBeNull()
  })
  it.each(['', '{', '{"a"', 'array<int64', 'int64 |', 'int64x', 'unheard', 'array<'.repeat(200)])(
    'the shape of a table that is %j is rejected',
    (text) => expect(() => parseShape(text)).toThrow(),
  )
})

describe('a snapshot', () => {
  it('a snapshot becomes a schema, documents and files', async () => {
    const made = await converted(convexExport([users, messages], files), openConvex)
    expect(made.schema).toMatchInlineSnapshot(`
      "import { defineSchema, table, v } from 'svc'

      export default defineSchema({
        chatMessages: table({
          importedId: v.string(),
          creationTime: v.float64(),
          author: v.id('users'),
          body: v.string(),
          picture: v.optional(v.id('files')),
          key: v.nullable(v.bytes()),
          score: v.union(v.float64(), v.string()),
        }).unique('byImportedId', ['importedId']),

        users: table({
          importedId: v.string(),
          creationTime: v.float64(),
          name: v.string(),
          karma: v.int64(),
        }).unique('byImportedId', ['importedId']),
      })
      "
    `)
    const idOf = (table: string, source: string, id: string) => importedId(table, source, id)
    const fileId = idOf('fil', '_storage', picture)
    expect(made.documents('users')).toEqual([
      {
        _id: idOf('users', 'users', user),
        importedId: user,
        creationTime: 1737061700000.125,
        name: 'Ada',
        karma: '9007199254740993',
      },
      {
        _id: idOf('users', 'users', other),
        importedId: other,
        creationTime: 1737061700001,
        name: '123',
        karma: -5,
      },
    ])
    expect(made.documents('chatMessages')).toMatchObject([
      { author: idOf('users', 'users', user), picture: fileId, key: null, score: 1.5 },
      { author: idOf('users', 'users', other), body: user, key: 'AP8', score: 'Infinity' },
    ])
    const [file] = made.text('files/manifest.jsonl').trimEnd().split('\n')
    expect(JSON.parse(file!)).toEqual({
      fileId,
      path: `files/${fileId}`,
      key: `convex/${picture}.txt`,
      contentType: 'text/plain',
      size: 9,
      sha256: createHash('sha256').update('a picture').digest('hex'),
    })
    expect(made.text(`files/${fileId}`)).toBe('a picture')
  })

  it('a snapshot is reported with counts, digests and names', async () => {
    const { report, text } = await converted(convexExport([users, messages], files), openConvex)
    const [chat, people] = report.collections
    expect(chat).toMatchObject({
      source: 'chat_messages',
      table: 'chatMessages',
      documents: 2,
      leftOut: 0,
      textIds: ['body'],
      sourceDigest: createHash('sha256').update(convexLines(messages)).digest('hex'),
    })
    expect(people!.renamed).toContainEqual({ from: '_creationTime', to: 'creationTime' })
    expect(report.files).toEqual({ count: 1, bytes: 9 })
    expect(report.conversions).toEqual([{ what: 'numbers that are not finite to texts', count: 1 }])
    expect(report.noCounterpart.join('\n')).toContain('Functions')
    expect(text('report.md')).toContain('| chat\\_messages | chatMessages | 2 | 0 |')
    expect(JSON.parse(text('report.json'))).toEqual(report)
  })

  it('a snapshot gives the same bytes each time', async () => {
    const archive = convexExport([users, messages], files)
    const first = await converted(archive, openConvex)
    const second = await converted(archive, openConvex)
    expect(second.all()).toEqual(first.all())
  })

  it('a snapshot without files keeps their IDs as texts and says so', async () => {
    const made = await converted(convexExport([messages, users]), openConvex)
    expect(made.documents('chatMessages')[0]).toMatchObject({ picture })
    expect(made.report.noCounterpart.join('\n')).toContain('--include-file-storage')
  })

  it('a snapshot with a document that does not fit leaves it out and says why', {
    tags: ['slow'],
  }, async () => {
    const table = {
      ...users,
      documents: [
        ...users.documents,
        [convexId(USERS, 3), { name: 'x', karma: 1n, _creationTime: 1, big: 'x'.repeat(2 ** 20) }],
      ] as ConvexTable['documents'],
    }
    const made = await converted(convexExport([table]), openConvex)
    expect(made.documents('users')).toHaveLength(2)
    expect(made.report.collections[0]).toMatchObject({
      documents: 2,
      leftOut: 1,
      reasons: ['Expected at most 1048576 bytes.'],
    })
    expect(made.text('left-out/users.jsonl').split('\n')).toHaveLength(2)
    expect(made.text('report.md')).toContain('## Left out')
  })

  it('a snapshot with a value that is too deep or too long leaves it out', {
    tags: ['slow'],
  }, async () => {
    const nested = (levels: number): ConvexValue => (levels === 0 ? 1 : [nested(levels - 1)])
    const table = (value: ConvexValue): ConvexTable => ({
      name: 'things',
      number: 10_005,
      shape: 'unknown',
      documents: [[convexId(10_005, 1), { _creationTime: 1, value }]],
    })
    for (const [value, documents] of [
      [nested(63), 1],
      [nested(64), 0],
      [Array(10_000).fill(1), 1],
      [Array(10_001).fill(1), 0],
    ] as const) {
      const { report } = await converted(convexExport([table(value)]), openConvex)
      expect(report.collections[0]).toMatchObject({ documents, leftOut: 1 - documents })
    }
  })

  it('a snapshot with names that are not allowed gets others', async () => {
    const named = (name: string, number: number): ConvexTable => ({
      name,
      number,
      shape: 'unknown',
      documents: [[convexId(number, 1), { _creationTime: 1, importedId: 'mine' }]],
    })
    const tables = [named('Users', 1), named('users', 2), named('files', 3), named('a_b', 4)]
    const { report, documents } = await converted(convexExport(tables), openConvex)
    const names = report.collections.map(({ source, table }) => [source, table])
    expect(Object.fromEntries(names)).toEqual({
      Users: 'users',
      users: 'users2',
      files: 'importedFiles',
      a_b: 'aB',
    })
    expect(documents('users')[0]).toMatchObject({ importedId2: 'mine' })
  })

  it.each([
    ['is none', zipOf([{ name: 'a', content: '' }]), 'has no _tables/documents.jsonl'],
    [
      'has an unknown shape',
      convexExport([{ ...users, shape: '{"name": tuple<string>}' }]),
      'has a shape that is not known',
    ],
    [
      'lacks a file',
      zipOf([
        { name: '_tables/documents.jsonl', content: '' },
        { name: '_storage/documents.jsonl', content: `{"_id":"${picture}"}\n` },
      ]),
      'is not in the export',
    ],
  ])('a snapshot that %s is rejected', async (_, archive, message) => {
    await expect(converted(archive, openConvex)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining(message),
    })
  })
})

const key = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_]{0,8}$/)
const arbitraryConvex = fc.letrec<{ value: ConvexValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'convex' },
    fc.constant(null),
    fc.boolean(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN),
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom('5', 'Infinity', 'AAAA', '2026-01-31T00:00:00Z', user, picture),
    fc.uint8Array({ maxLength: 9 }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
})).value

/** Returns what a value becomes, if no text of its place is an ID. */
function expectedOf(value: ConvexValue): Value {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? (value === 0 ? 0 : value) : String(value)
  }
  if (value instanceof Uint8Array || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(expectedOf)
  return new Map(Object.entries(value).map(([name, item]) => [name, expectedOf(item)]))
}

/** Reads a typed ID of the user or of the picture as the text that the export has. */
function withTexts(value: Value): Value {
  if (typeof value === 'object' && value !== null && 'id' in value) {
    return value.id.startsWith('fil_') ? picture : user
  }
  if (Array.isArray(value)) return value.map((item) => withTexts(item as Value))
  if (!(value instanceof Map)) return value
  return new Map([...(value as ValueObject)].map(([name, item]) => [name, withTexts(item)]))
}

it('random documents of Convex have equal values behind the conversion', {
  tags: ['slow'],
  timeout: 300_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(key, arbitraryConvex, { maxKeys: 5 }), { maxLength: 5 }),
      async (documents) => {
        const table: ConvexTable = {
          name: 'things',
          number: 10_005,
          shape: 'unknown',
          hasContexts: true,
          documents: documents.map((fields, i) => [convexId(10_005, i), fields]),
        }
        const made = await converted(convexExport([table, users], files), openConvex)
        const fields = fieldsIn(made.schema, 'things')
        const read = plainReader({ type: 'object', fields })
        const lines = made.text('data/things.jsonl').split('\n').slice(0, -1)
        expect(lines).toHaveLength(documents.length)
        for (const [i, line] of lines.entries()) {
          const json = parseStrictJson(line, ROUNDED)
          if (!isJsonObject(json)) throw new TypeError('a line is no object')
          const { _id, ...rest } = json
          const { importedId: source, ...own } = Object.fromEntries(
            withTexts(read(rest)) as ValueObject,
          )
          expect(source).toBe(convexId(10_005, i))
          const expected = expectedOf(documents[i]!) as ValueObject
          const found = new Map(Object.entries(own))
          expect(valueEquals(found, expected), line).toBe(true)
        }
      },
    ),
    { numRuns: 60 },
  )
})
