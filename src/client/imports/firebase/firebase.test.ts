/**
 * A managed export that the emulator of Firestore wrote of a sample application
 * (testing/imports/fixtures/make-firebase.mjs), and exports of random documents.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { converted } from '../../../../testing/imports/conversions.ts'
import {
  entityOf,
  type FirestoreDocument,
  type FirestoreValue,
  firestoreExport,
  logOf,
  propertyOf,
} from '../../../../testing/imports/firestore-exports.ts'
import { fieldsIn } from '../../../../testing/imports/schema-fields.ts'
import { type ZipFile, zipOf } from '../../../../testing/imports/zip-writer.ts'
import { fc } from '../../../../testing/properties.ts'
import { SEED } from '../../../../testing/seeds.ts'
import { plainReader } from '../../../value/plain.ts'
import { type JsonObject, parseStrictJson, ROUNDED } from '../../../value/strict-json.ts'
import { type Value, type ValueObject, valueEquals } from '../../../value/values.ts'
import { openFirebase } from './firebase.ts'

const SAMPLE = join(
  import.meta.dirname,
  '../../../../testing/imports/fixtures/firebase-emulator.zip',
)

const exported = (documents: readonly FirestoreDocument[], more: readonly ZipFile[] = []) =>
  zipOf([...firestoreExport(documents), ...more])

describe('an export', () => {
  it('an export becomes a schema with the types that occur', async () => {
    const { schema } = await converted(SAMPLE, openFirebase)
    expect(schema).toMatchInlineSnapshot(`
      "import { defineSchema, table, v } from 'svc'

      export default defineSchema({
        emptyDocs: table({
          importedId: v.string(),
        }).unique('byImportedId', ['importedId']),

        large: table({
          importedId: v.string(),
          text: v.string(),
          more: v.string(),
        }).unique('byImportedId', ['importedId']),

        numbers: table({
          importedId: v.string(),
          n: v.optional(v.string()),
          huge: v.optional(v.int64()),
          low: v.optional(v.int64()),
          small: v.optional(v.float64()),
        }).unique('byImportedId', ['importedId']),

        phantomsItems: table({
          importedId: v.string(),
          n: v.float64(),
          parent: v.string(),
        })
          .unique('byImportedId', ['importedId'])
          .index('byParent', ['parent']),

        rooms: table({
          importedId: v.string(),
          title: v.string(),
          empty: v.optional(v.array(v.any())),
          owner: v.optional(v.id('users')),
          members: v.optional(v.array(v.id('users'))),
          open: v.optional(v.boolean()),
          score: v.optional(v.float64()),
          likes: v.optional(v.float64()),
          whole: v.optional(v.float64()),
          big: v.optional(v.float64()),
          text: v.optional(v.string()),
          unicode: v.optional(v.string()),
          key: v.optional(v.bytes()),
          none: v.optional(v.object({})),
          mixed: v.optional(v.array(v.nullable(v.union(
            v.boolean(),
            v.float64(),
            v.bytes(),
            v.timestamp(),
            v.string(),
            v.object({
              latitude: v.optional(v.float64()),
              longitude: v.optional(v.float64()),
              a: v.optional(v.object({
                b: v.array(v.union(v.float64(), v.string(), v.object({ c: v.null() }))),
              })),
            }),
          )))),
          map: v.optional(v.record(v.union(
            v.float64(),
            v.object({
              e: v.array(v.any()),
              when: v.timestamp(),
              place: v.object({ latitude: v.float64(), longitude: v.float64() }),
              ref: v.id('roomsMessages'),
              list: v.array(v.object({ q: v.float64() })),
              m: v.object({}),
              one: v.array(v.string()),
            }),
          ))),
          nan: v.optional(v.string()),
          infinite: v.optional(v.string()),
          minus: v.optional(v.string()),
          zero: v.optional(v.float64()),
          outside: v.optional(v.string()),
          vector: v.optional(v.array(v.float64())),
          tags: v.optional(v.array(v.string())),
          odd_field: v.optional(v.float64()),
          parent: v.optional(v.string()),
          blank: v.optional(v.string()),
        }).unique('byImportedId', ['importedId']),

        roomsMessages: table({
          importedId: v.string(),
          text: v.string(),
          author: v.id('users'),
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
          age: v.float64(),
          joined: v.timestamp(),
          home: v.nullable(v.object({ latitude: v.float64(), longitude: v.float64() })),
        }).unique('byImportedId', ['importedId']),

        authUsers: table({
          importedId: v.string(),
          email: v.optional(v.string()),
          emailVerified: v.optional(v.boolean()),
          displayName: v.optional(v.string()),
          createdAt: v.timestamp(),
          lastSignedInAt: v.optional(v.timestamp()),
          providerUserInfo: v.array(v.object({
            providerId: v.string(),
            rawId: v.string(),
            email: v.string(),
            displayName: v.string(),
          })),
          phoneNumber: v.optional(v.string()),
          disabled: v.optional(v.boolean()),
          customAttributes: v.optional(v.string()),
        })
          .unique('byImportedId', ['importedId'])
          .index('byEmail', ['email']),
      })
      "
    `)
  })

  it('an export becomes documents with references, times, places and parents', async () => {
    const made = await converted(SAMPLE, openFirebase)
    const users = made.documents('users')
    const ada = users.find(({ importedId }) => importedId === 'ada')!
    const bob = users.find(({ importedId }) => importedId === 'bob')!
    expect(ada).toMatchObject({
      name: 'Ada',
      age: 36,
      joined: '2026-01-31T12:30:00.123000Z',
      home: { latitude: 52.5, longitude: 13.4 },
    })
    expect(bob).toMatchObject({ age: 36.5, joined: '2026-01-31T12:30:00.123456Z', home: null })
    const [first] = made.documents('rooms').filter(({ importedId }) => importedId === 'r1')
    expect(first).toMatchObject({
      owner: ada._id,
      members: [ada._id, bob._id],
      outside: 'gone/g',
      key: 'AAH_',
      likes: 3,
      empty: [],
      tags: ['only'],
      nan: 'NaN',
      infinite: 'Infinity',
      minus: '-Infinity',
      zero: 0,
      vector: [1, 2.5, -3],
      unicode: 'ünï😀',
      odd_field: 7,
      parent: 'mine',
      blank: '',
    })
    const messages = made.documents('roomsMessages')
    const byId = new Map(messages.map((each) => [each.importedId, each]))
    expect([...byId.keys()].sort()).toEqual(['r1/m1', 'r1/m2', 'r2/m1'])
    expect(byId.get('r1/m1')).toMatchObject({ text: 'hi', author: ada._id, parent: first!._id })
    expect(first!.map as Record<string, unknown>).toMatchObject({
      deep: { list: [{ q: 1 }], one: ['only'] },
    })
    expect(made.documents('roomsMessagesReactions')).toMatchObject([
      { importedId: 'r1/m1/x', parent: byId.get('r1/m1')!._id },
    ])
    expect(made.documents('phantomsItems')).toMatchObject([{ n: 1, parent: 'phantoms/p' }])
    expect(
      made
        .documents('numbers')
        .map(({ importedId }) => importedId)
        .sort(),
    ).toEqual(['__id7__', 'n'])
    expect(made.documents('emptyDocs')).toHaveLength(1)
    expect(made.documents('large')).toMatchObject([{ text: 'y'.repeat(700_000) }])
  })

  it('an export becomes users without secrets, and files', { tags: ['slow'] }, async () => {
    const made = await converted(SAMPLE, openFirebase)
    expect(made.documents('authUsers')).toMatchObject([
      {
        importedId: 'ada',
        email: 'ada@example.com',
        emailVerified: true,
        lastSignedInAt: '2026-01-31T12:30:00.123000Z',
        providerUserInfo: [{ providerId: 'google.com', rawId: '117' }],
      },
      { importedId: 'bob', disabled: true, customAttributes: '{"admin":true}' },
    ])
    for (const secret of ['c2VjcmV0', 'passwordHash', 'salt"', '+49999']) {
      expect(Object.values(made.all()).join('\n')).not.toContain(secret)
    }
    const [file] = made.text('files/manifest.jsonl').trimEnd().split('\n')
    expect(JSON.parse(file!)).toMatchObject({ key: 'firebase/rooms/r1.txt', size: 11 })
    expect(made.text(JSON.parse(file!).path)).toBe('the picture')
    expect(made.report.noCounterpart.join('\n')).toContain('password hashes')
    expect(made.report.collections.every(({ leftOut }) => leftOut === 0)).toBe(true)
    expect((await converted(SAMPLE, openFirebase)).all()).toEqual(made.all())
  })

  it('an export has no secret of a user who is left out', async () => {
    const users = [
      { localId: 7, passwordHash: 'top-secret' },
      { localId: 'a', createdAt: 'x', salt: 'top-secret' },
    ]
    const content = JSON.stringify({ users })
    const made = await converted(zipOf([{ name: 'users.json', content }]), openFirebase)
    expect(made.report.collections).toMatchObject([{ documents: 0, leftOut: 2 }])
    expect(Object.values(made.all()).join('\n')).not.toContain('top-secret')
  })

  it(`random documents are converted with every value (SVC_SEED=${SEED})`, {
    tags: ['slow'],
    timeout: 300_000,
  }, async () => {
    const id = fc.stringMatching(/^[a-zA-Z0-9é]{1,12}$/)
    const key = fc.constantFrom('a', 'b', 'c', 'odd key', 'constructor', 'type', 'value')
    const { value } = fc.letrec<{ value: FirestoreValue; map: FirestoreValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constant(null),
        fc.boolean(),
        fc.string({ unit: 'grapheme' }),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => each || 0.5),
        fc.uint8Array({ maxLength: 40 }),
        tie('map'),
        fc.array(fc.oneof(fc.boolean(), fc.string(), fc.constant(null), tie('map')), {
          maxLength: 4,
        }),
      ),
      map: fc
        .dictionary(key, tie('value'), { maxKeys: 4 })
        .map((each) => new Map(Object.entries(each))),
    }))
    const documents = fc.uniqueArray(
      fc.tuple(fc.constantFrom('rooms', 'users'), id, fc.dictionary(key, value, { maxKeys: 5 })),
      { selector: ([kind, name]) => `${kind}/${name}`, minLength: 1, maxLength: 30 },
    )
    await fc.assert(
      fc.asyncProperty(documents, async (made) => {
        const list = made.map(([kind, name, fields]): FirestoreDocument => {
          return [[kind, name], new Map(Object.entries(fields))]
        })
        const result = await converted(exported(list), openFirebase)
        const total = result.report.collections.reduce((sum, each) => sum + each.documents, 0)
        expect(total).toBe(list.length)
        for (const { table, renamed } of result.report.collections) {
          const names = new Map(renamed.map(({ from, to }) => [to, from]))
          const read = plainReader({ type: 'object', fields: fieldsIn(result.schema, table) })
          const own = new Map(
            list.flatMap(([[kind, name], each]) =>
              kind === table ? [[name!, each] as const] : [],
            ),
          )
          for (const line of result.text(`data/${table}.jsonl`).split('\n').slice(0, -1)) {
            const { _id, ...json } = parseStrictJson(line, ROUNDED) as JsonObject
            const { importedId: id, ...rest } = Object.fromEntries(read(json) as ValueObject)
            const found = Object.entries(rest).map(
              ([name, each]) => [names.get(name) ?? name, each] as const,
            )
            const expected = own.get(id as string)! as Value
            expect(valueEquals(new Map(found), expected), line).toBe(true)
            own.delete(id as string)
          }
          expect(own.size).toBe(0)
        }
      }),
      { seed: SEED, numRuns: 60 },
    )
  })
})

describe('a damaged export', () => {
  const whole = firestoreExport([[['users', 'a'], new Map([['name', 'Ada']])]])
  const output = whole.find(({ name }) => name.endsWith('output-0'))!
  const withOutput = (content: Uint8Array) =>
    zipOf(whole.map((each) => (each === output ? { ...each, content } : each)))
  const bytes = Buffer.from(output.content)
  const changed = Buffer.from(bytes)
  changed[bytes.length - 1]! ^= 1
  const record = (content: string | Uint8Array) => logOf([Buffer.from(content)])
  it.each([
    ['has no part of Firebase', zipOf([{ name: 'a.txt', content: '' }]), 'has neither a managed'],
    ['has no documents', exported([]), 'has no documents'],
    ['lacks its metadata', zipOf([output]), 'may not be whole'],
    ['lacks an output', zipOf(whole.filter((each) => each !== output)), 'output-0 is missing'],
    ['is cut', withOutput(bytes.subarray(0, -1)), 'ends within a record'],
    ['is changed', withOutput(changed), 'another checksum'],
    ['has no entity', withOutput(record('hello')), 'no document'],
    ['has an entity without a path', withOutput(record('')), 'no document'],
    [
      'has another database too',
      withOutput(logOf([entityOf(['a', 'b'], new Map()), entityOf(['a', 'c'], new Map(), 'x')])),
      'more than one database',
    ],
    ['has users that do not end', zipOf([{ name: 'users.json', content: '{"users":[' }]), 'end'],
    [
      'has too many collections',
      exported(Array.from({ length: 1_001 }, (_, i) => [[`c${i}`, 'a'], new Map()])),
      'more than 1000 collections',
    ],
  ])('an export that %s is rejected and leaves nothing', async (_, archive, message) => {
    const scratch = mkdtempSync(join(tmpdir(), 'svc-firebase-'))
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }))
    const before = process.env.TMPDIR
    process.env.TMPDIR = scratch
    try {
      await expect(converted(archive, openFirebase)).rejects.toMatchObject({
        code: 'CLIENT_EXPORT_INVALID',
        detail: expect.stringContaining(message),
      })
    } finally {
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
    }
    const left = readdirSync(scratch, { recursive: true }).map(String)
    expect(left.filter((name) => !/^svc-import-\w+(?:\/export\.zip)?$/.test(name))).toEqual([])
  })

  it('a document with a key __proto__ or a property of two values is left out', async () => {
    const nested = new Map([['__proto__', 'x']])
    const both = Buffer.concat([Buffer.of(1 * 8, 1), Buffer.of(2 * 8, 1)])
    const property = Buffer.concat([Buffer.of(3 * 8 + 2, 1), Buffer.from('a')])
    const content = Buffer.concat([property, Buffer.of(5 * 8 + 2, both.length), both])
    const made = await converted(
      withOutput(
        logOf([
          entityOf(['users', 'proto'], new Map([['map', nested]])),
          Buffer.concat([
            entityOf(['users', 'both'], new Map()),
            Buffer.of(15 * 8 + 2, content.length),
            content,
          ]),
          entityOf(['users', 'good'], new Map([['', new Map([['a', 'b']])]])),
        ]),
      ),
      openFirebase,
    )
    expect(made.report.collections).toMatchObject([{ documents: 1, leftOut: 2 }])
    expect(made.schema).not.toContain('__proto__')
    expect(made.documents('users')).toMatchObject([{ importedId: 'good', field: { a: 'b' } }])
  })

  it('a document that is too deep, has a field twice or no UTF-8 is left out alone', async () => {
    let deep: FirestoreValue = 'x'
    for (let i = 0; i < 100; i++) deep = new Map([['d', deep]])
    const twice = Buffer.concat([
      entityOf(['users', 'twice'], new Map([['a', 'x']])),
      entityOf(['users', 'twice'], new Map([['a', 'y']])),
    ])
    const invalid = entityOf(['users', 'latin'], new Map([['a', 'XYZ']]))
    invalid[invalid.indexOf('XYZ')] = 0xff
    const made = await converted(
      zipOf(
        whole.map((each) =>
          each === output
            ? {
                ...each,
                content: logOf([
                  entityOf(['users', 'deep'], new Map([['d', deep]])),
                  twice,
                  invalid,
                  entityOf(['users', 'i'.repeat(1_400)], new Map()),
                  entityOf(['users', 'good'], new Map([['__proto__', 'safe']])),
                ]),
              }
            : each,
        ),
      ),
      openFirebase,
    )
    expect(made.report.collections).toMatchObject([{ documents: 1, leftOut: 4 }])
    expect(made.documents('users')).toMatchObject([{ importedId: 'good', proto: 'safe' }])
    expect([...made.report.collections[0]!.reasons].sort()).toEqual([
      'Expected UTF-8 text.',
      'Expected an ID of at most 1000 bytes.',
      'Expected at most 64 levels.',
      'Expected each field once.',
    ])
  })
})

it('documents of several collections that alternate are all read, over many chunks', {
  tags: ['slow'],
}, async () => {
  const list = Array.from({ length: 4_000 }, (_, i): FirestoreDocument => {
    const fields = new Map([['text', `${i} ${'x'.repeat(i % 7 === 0 ? 4_000 : 900)}`]])
    return [[i % 2 === 0 ? 'even' : 'odd', `d${i}`], fields]
  })
  const made = await converted(exported(list), openFirebase)
  for (const [table, rest] of [
    ['even', 0],
    ['odd', 1],
  ] as const) {
    const expected = list.filter((_, i) => i % 2 === rest)
    const found = made.documents(table).map(({ importedId, text }) => [importedId, text])
    expect(found).toEqual(expected.map(([[, id], fields]) => [id, fields.get('text')]))
  }
})

it('a list in two parts is whole, and the report says that its order may differ', async () => {
  const entity = Buffer.concat([
    entityOf(['users', 'a'], new Map()),
    propertyOf('list', 'unindexed', true, 15),
    propertyOf('list', 'indexed', true, 14),
  ])
  const files = firestoreExport([]).map((each) =>
    each.name.endsWith('output-0') ? { ...each, content: logOf([entity]) } : each,
  )
  const made = await converted(zipOf(files), openFirebase)
  expect(made.documents('users')).toMatchObject([{ list: ['indexed', 'unindexed'] }])
  expect(made.report.conversions).toMatchObject([
    { what: expect.stringContaining('the unindexed items come last'), count: 1 },
  ])
})
