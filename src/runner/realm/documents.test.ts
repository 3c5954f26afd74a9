/**
 * Goal: the code of a Function owns its copies of documents, and those that it returns unchanged
 * are named instead of sent. Method: a Host in this process that gets documents as the server sends
 * them, and once more as whole text; the results are the same.
 */
import { describe, expect, test } from 'vitest'
import { arbitraryValue } from '../../../testing/arbitrary-values.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import { Driver, errorOf, resultOf } from '../../../testing/runner-hosts.ts'
import { SEED } from '../../../testing/seeds.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { documentText } from '../../engine/calls/document-text.ts'
import {
  RETURNED_DOCUMENTS,
  returnedContent,
  returnedValue,
} from '../../engine/calls/returned-documents.ts'
import { SentDocuments } from '../../engine/runners/sent-documents.ts'
import { compileResult } from '../../value/schema/result-encoding.ts'
import { encodeStored, fromStoredJson } from '../../value/stored.ts'
import type { ValidatorJson } from '../../value/validators.ts'

const ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const FIELDS = '{"body":"text","list":[{"$i":"1"},{"deep":{"x":1}}],"map":{"a":1,"b":"c"}}'
const BYTES = '{"bytes":{"$b":"AAEC"}}'

function documentOf(text: string, sequence = 3, id = ID): StoredDocument {
  return { id, createdAtMicros: 5n, sequence, text }
}

/** Replies to `get` with one of the documents, and to `range` with all of them. */
function documentReplies(all: readonly StoredDocument[]) {
  return ([type, id]: readonly unknown[]) => {
    if (type === 'range') return { documents: all, page: { cursor: null, done: true } }
    return { documents: all.filter((each) => each.id === id), page: null }
  }
}

/** Replies with the documents as whole text, which cannot be named. */
function textReplies(all: readonly StoredDocument[]) {
  return ([type, id]: readonly unknown[]) => {
    const found = all.filter((each) => type === 'range' || each.id === id).map(documentText)
    return type === 'range' ? `{"documents":[${found}],"done":true,"cursor":null}` : found.join()
  }
}

const one = documentOf(FIELDS)

describe('a document that is returned', () => {
  const driver = new Driver(`
    same: query((ctx) => ctx.db.get('${ID}')),
    twice: query(async (ctx) => {
      const [a, b] = [await ctx.db.get('${ID}'), await ctx.db.get('${ID}')]
      return { b, list: [a, a], keys: Object.keys(b) }
    }),
    spread: query(async (ctx) => ({ ...await ctx.db.get('${ID}') })),
    part: query(async (ctx) => (await ctx.db.get('${ID}')).map),
    bare: query(async (ctx) => Object.setPrototypeOf(await ctx.db.get('${ID}'), null)),
    symbol: query(async (ctx) => Object.assign(await ctx.db.get('${ID}'), { [Symbol('x')]: 1 })),
    frozen: query(async (ctx) => Object.freeze(await ctx.db.get('${ID}'))),
    all: query((ctx) => ctx.db.table('notes').scan().collect()),`)

  test('unchanged is named by its index among all that the call was given', () => {
    expect(resultOf(driver.run('same', '{}', documentReplies([one])))).toEqual({ $r: 0 })
    const twice = resultOf(driver.run('twice', '{}', documentReplies([one])))
    expect(twice).toMatchObject({ b: { $r: 1 }, list: [{ $r: 0 }, { $r: 0 }] })
    const others = [documentOf('{}', 4, ID.replace('FAV', 'FAW')), one]
    expect(resultOf(driver.run('all', '{}', documentReplies(others)))).toEqual([
      { $r: 0 },
      { $r: 1 },
    ])
    for (const name of ['bare', 'symbol', 'frozen']) {
      expect(resultOf(driver.run(name, '{}', documentReplies([one])))).toEqual({ $r: 0 })
    }
  })

  test('a document that is returned as another object, or in part, is sent whole', () => {
    for (const name of ['spread', 'part']) {
      const found = resultOf(driver.run(name, '{}', documentReplies([one])))
      expect(found).toEqual(resultOf(driver.run(name, '{}', textReplies([one]))))
      expect(JSON.stringify(found)).not.toContain('$r')
    }
  })

  test('a returned document is named in later calls, and sent anew once it was written', () => {
    for (let call = 0; call < 3; call++) {
      const { documents, message } = driver.run('same', '{}', documentReplies([one]))
      expect(documents).toEqual([one])
      expect(message).toMatchObject({ result: { $r: 0 } })
    }
    const newer = documentOf('{"body":"newer"}', 4)
    expect(resultOf(driver.run('spread', '{}', documentReplies([newer])))).toMatchObject({
      body: 'newer',
      _revision: { $i: '4' },
    })
  })

  test('beyond the first thousand of a call is sent whole', () => {
    const many = Array.from({ length: 1_030 }, (_, i) => documentOf(`{"n":${i}}`, i + 1))
    const found = resultOf(driver.run('all', '{}', documentReplies(many))) as unknown[]
    expect(found[1_023]).toEqual({ $r: 1_023 })
    expect(found.slice(1_024)).toEqual(many.slice(1_024).map(returnedContent))
  })
})

/** Changes of the document `doc` by code; each leaves it different from what was stored. */
const CHANGES: Readonly<Record<string, string>> = {
  changes: 'doc.body = "other"',
  adds: 'doc.more = 1',
  addsNothing: 'doc.more = undefined',
  removes: 'delete doc.body',
  removesAndAddsNothing: 'delete doc.body; doc.more = undefined',
  removesAndAddsInherited: 'delete doc.body; doc.valueOf = Object.prototype.valueOf',
  replacesByName: 'delete doc.body; doc.other = "text"',
  unsets: 'doc.body = undefined',
  nulls: 'doc.body = null',
  hides: 'Object.defineProperty(doc, "body", { enumerable: false })',
  hidesAndAdds: 'Object.defineProperty(doc, "body", { enumerable: false }); doc.more = "text"',
  gets: 'Object.defineProperty(doc, "body", { get: () => "other" })',
  throws: 'Object.defineProperty(doc, "body", { get() { throw new TypeError("got") } })',
  numbers: 'doc._revision = 3',
  bigger: 'doc._revision += 1n',
  negativeZero: 'doc.map.a = -0',
  changesDeep: 'doc.list[1].deep.x = 2',
  addsDeep: 'doc.map.more = undefined; delete doc.map.b',
  pushes: 'doc.list.push(1)',
  pops: 'doc.list.length = 1',
  punches: 'delete doc.list[0]',
  listToObject: 'doc.list = { 0: 1n, 1: { deep: { x: 1 } } }',
  objectToList: 'doc.map = []',
  derives: 'Object.setPrototypeOf(doc.map, { a: 1 })',
  bareDeep: 'Object.setPrototypeOf(doc.map, null)',
  classy: 'Object.setPrototypeOf(doc, class Note {}.prototype)',
  proxied: 'doc.map = new Proxy(doc.map, { get: () => 7 })',
  self: 'doc.map = doc',
  bytes: 'if (doc.bytes) doc.bytes[0] = 9',
}

/** Changes after which the document cannot be stored. */
const UNSTORABLE = ['removesAndAddsInherited', 'throws', 'punches', 'derives', 'classy', 'self']

describe('documents that the code changed', () => {
  const members = Object.entries(CHANGES).map(
    ([name, code]) => `${name}: query(async (ctx) => {
      const doc = await ctx.db.get('${ID}')
      ${code}
      return [doc]
    }),`,
  )
  const driver = new Driver(members.join('\n'))

  test.each(Object.keys(CHANGES))('a document is sent whole after the change "%s"', (name) => {
    const all = [documentOf(name === 'bytes' ? BYTES : FIELDS)]
    const expected = driver.run(name, '{}', textReplies(all))
    expect(expected.message?.type === 'threw').toBe(UNSTORABLE.includes(name))
    // The second call is given the document that the host keeps.
    for (let call = 0; call < 2; call++) {
      const run = driver.run(name, '{}', documentReplies(all))
      if (expected.message?.type === 'threw') expect(errorOf(run)).toBe(errorOf(expected))
      else expect(resultOf(run)).toEqual(resultOf(expected))
    }
  })
})

describe('a copy belongs to the call', () => {
  const text = '{"body":"text","bytes":{"$b":"AAEC"},"list":[{"x":[{"$i":"1"}]}]}'
  const driver = new Driver(`
    spoils: query(async (ctx) => {
      const doc = await ctx.db.get('${ID}')
      doc.body = 'spoiled'; doc.bytes[0] = 9; doc.list[0].x[0] = 2n; doc.list[0].y = 1
      doc.list.push(1); doc.more = 1; delete doc._id
      return ctx.db.get('${ID}')
    }),
    reads: query((ctx) => ctx.db.get('${ID}')),
    flat: query(async (ctx) => {
      const doc = await ctx.db.get('${ID}')
      doc.body = 'spoiled'; doc.more = 1; delete doc._id
      return ctx.db.get('${ID}')
    }),
    spread: query(async (ctx) => ({ ...await ctx.db.get('${ID}') })),`)

  test('changes of it are visible neither to the next read nor to the next call', () => {
    const all = [documentOf(text)]
    for (let call = 0; call < 2; call++) {
      const spoils = driver.run('spoils', '{}', documentReplies(all))
      expect(resultOf(spoils)).toEqual(returnedContent(all[0]!))
    }
    expect(resultOf(driver.run('reads', '{}', documentReplies(all)))).toEqual(
      returnedContent(all[0]!),
    )
  })

  test('changes of a flat document are not visible either', () => {
    const all = [documentOf('{"body":"text"}')]
    for (let call = 0; call < 2; call++) {
      expect(resultOf(driver.run('flat', '{}', documentReplies(all)))).toEqual({ $r: 1 })
    }
    expect(resultOf(driver.run('spread', '{}', documentReplies(all)))).toEqual(
      returnedContent(all[0]!),
    )
  })
})

const fieldName = fc.constantFrom('a', 'b', 'body', 'toString', 'constructor', 'valueOf')
const document = fc
  .tuple(fc.dictionary(fieldName, arbitraryValue, { maxKeys: 4 }), fc.nat({ max: 3 }))
  .map(([fields, number]) => ({
    number,
    text: encodeStored(new Map(Object.entries(fields))),
  }))

/** Steps of the code: each picks a document, changes it and wraps it in a result. */
const program = fc.array(
  fc.record({ at: fc.nat({ max: 9 }), change: fc.nat({ max: 7 }), wrap: fc.nat({ max: 6 }) }),
  { minLength: 1, maxLength: 8 },
)

/** A Function that applies the steps in its argument to all documents. */
const PROGRAM = `
  work: query(async (ctx, input) => {
    const all = await ctx.db.table('notes').scan().collect()
    const again = await ctx.db.table('notes').scan().collect()
    const keys = (doc) => Object.keys(doc).filter((key) => key[0] !== '_')
    const changes = [
      (doc) => doc, (doc) => doc, (doc) => doc,
      (doc) => { doc.a = 1; return doc },
      (doc) => { delete doc[keys(doc)[0]]; doc.late = undefined; return doc },
      (doc) => {
        for (const key of keys(doc)) if (Array.isArray(doc[key])) doc[key].push(null)
        return doc
      },
      (doc) => { const { _id, ...rest } = doc; return Object.assign(doc, { _id }, rest) },
      (doc) => ({ ...doc }),
    ]
    const wraps = [
      (doc) => doc, (doc) => [doc], (doc) => ({ doc }), (doc) => [[doc, doc]],
      (doc) => ({ a: { a: doc } }), (doc) => keys(doc).map((key) => doc[key] ?? null),
      (doc) => ({ doc, all: again }),
    ]
    const pick = (at) => (at % 2 === 0 ? all : again)[(at >> 1) % all.length]
    return input.steps.map(({ at, change, wrap }) => wraps[wrap](changes[change](pick(at))))
  }),`

const RETURNS: readonly ValidatorJson[] = [
  { type: 'any' },
  { type: 'array', items: { type: 'any' } },
  {
    type: 'array',
    items: {
      type: 'union',
      members: [
        { type: 'nullable', inner: { type: 'record', values: { type: 'any' } } },
        { type: 'array', items: { type: 'any' } },
      ],
    },
  },
  {
    type: 'array',
    items: {
      type: 'union',
      members: [
        {
          type: 'object',
          fields: {
            _id: { type: 'id', table: 'notes' },
            _createdAt: { type: 'timestamp' },
            _revision: { type: 'int64' },
            a: { type: 'optional', inner: { type: 'any' } },
            b: { type: 'optional', inner: { type: 'string' } },
          },
        },
        { type: 'any' },
      ],
    },
  },
  { type: 'array', items: { type: 'record', values: { type: 'any' } } },
]

test(`naming documents changes no result of any program (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  // So few characters that most runs evict some documents.
  const driver = new Driver(PROGRAM, undefined, new SentDocuments(2_000))
  const plain = new Driver(PROGRAM)
  const encoders = RETURNS.map((json) => ({
    named: compileResult(json, RETURNED_DOCUMENTS),
    whole: compileResult(json),
  }))
  const versions = new Map<string, StoredDocument>()
  let names = 0
  let sequence = 0
  const documents = fc.array(document, { minLength: 1, maxLength: 4 })
  const property = fc.property(documents, program, (given, steps) => {
    const all = given.map(({ number, text }) => {
      const known = versions.get(`${number}${text}`)
      if (known !== undefined) return known
      sequence += 1
      const made = documentOf(text, sequence, `${ID.slice(0, -1)}${number}`)
      versions.set(`${number}${text}`, made)
      return made
    })
    const input = `{"steps":${JSON.stringify(steps)}}`
    const run = driver.run('work', input, documentReplies(all))
    const expected = resultOf(plain.run('work', input, textReplies(all)))
    const found = resultOf(run)
    if (JSON.stringify(found).includes('{"$r":')) names += 1
    expect(returnedValue(found, run.documents)).toEqual(fromStoredJson(expected))
    for (const { named, whole } of encoders) {
      expect(named(found, run.documents)).toBe(whole(expected))
    }
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(1_500) })
  expect(names).toBeGreaterThan(inputs(700))
})
