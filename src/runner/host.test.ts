/** Values and `ctx` in the code of a Workspace, and the errors that its mistakes cause. */

import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../testing/properties.ts'
import { type Answer, Driver, errorOf, ID, resultOf } from '../../testing/runner-hosts.ts'
import { decodeStored, encodeStored } from '../value/stored.ts'
import { Timestamp, TypedId, type Value } from '../value/values.ts'

const scalar = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (number === 0 ? 0 : number)),
  fc.string({ unit: 'grapheme' }),
  fc.uint8Array(),
  fc.constant(new TypedId(ID)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((micros) => new Timestamp(micros)),
)
const key = fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__')
const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('value')),
    fc
      .array(
        fc.tuple(
          fc.oneof(
            key,
            key.map((name) => `$${name}`),
          ),
          tie('value'),
        ),
      )
      .map((entries) => new Map(entries)),
  ),
}))

/** Converts a value as JavaScript code sees it: a typed ID is a string, a timestamp an int64. */
function plain(value: Value): Value {
  if (value instanceof TypedId) return value.id
  if (value instanceof Timestamp) return value.micros
  if (value instanceof Map) return new Map([...value].map(([name, field]) => [name, plain(field)]))
  return Array.isArray(value) ? value.map(plain) : value
}

describe('values', () => {
  const driver = new Driver('echo: query((ctx, input) => input.value),')

  test('values are returned as they were passed in', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(value, (sent) => {
        const found = resultOf(driver.run('echo', encodeStored(new Map([['value', sent]]))))
        expect(encodeStored(decodeStored(JSON.stringify(found)))).toBe(encodeStored(plain(sent)))
      }),
      { seed: 20_261_121, numRuns: inputs(2_000) },
    )
  })

  const invalid = [
    ['NaN', 'result.a[1] is NaN: use null, or check the number before'],
    ['-Infinity', 'is -Infinity'],
    ['undefined', 'result.a[1] is undefined: leave it out, or use null'],
    ['() => 1', 'is a function: keep only data'],
    ['Symbol("x")', 'is a symbol'],
    ['new Date(0)', 'is a Date (use BigInt(date.getTime()) * 1000n)'],
    ['new Map()', 'is a Map (use Object.fromEntries(map))'],
    ['new Set()', 'is a Set (use [...set])'],
    ['Promise.resolve()', 'is a promise (write "await" in front of it)'],
    ['new Int8Array()', 'is a view (use a Uint8Array)'],
    ['new (class Note {})()', 'is an instance of Note'],
    ['2n ** 63n', 'is a bigint outside of int64'],
    ['"\\ud800"', 'is a string with half a surrogate pair'],
    ['new Array(10001).fill(0)', 'has 10001 items'],
    ['{ ["__proto__"]: 1 }', 'result.a[1] has the key "__proto__": rename it'],
    ['{ "\\ud800": 1 }', 'result.a[1] has a key with half a surrogate pair'],
    ['(() => { const it = []; it.push(it); return it })()', 'does it contain itself?'],
  ] as const
  const members = invalid.map(([text], i) => `invalid${i}: query(() => ({ a: [0, ${text}] })),`)
  const rejecting = new Driver(members.join('\n'))

  test.each(invalid.map(([text, message], i) => [text, message, i] as const))(
    'values that are not data are rejected with their path and a fix: %s',
    (_, message, i) => {
      expect(errorOf(rejecting.run(`invalid${i}`))).toContain(message)
    },
  )

  test('values that are bytes are read without the methods that code added to them', () => {
    const own = new Driver(`own: query(() => {
      const bytes = new Uint8Array([1])
      Object.defineProperty(bytes, 'toBase64', { value: () => 'AA"},"x":{"$i":"5' })
      return [bytes]
    }),`)
    expect(resultOf(own.run('own'))).toEqual([{ $b: 'AQ' }])
  })

  test('values that are equal have one encoding', () => {
    const same = new Driver('all: query(() => [-0, { a: undefined }, Object.create(null)]),')
    expect(resultOf(same.run('all'))).toEqual([0, {}, {}])
    expect(resultOf(new Driver('none: query(() => {}),').run('none'))).toBeNull()
  })
})

describe('ctx.db', () => {
  const pages: Answer = ([type, request]) => {
    if (type !== 'range') return `{"_id":{"$d":"${ID}"}}`
    const { cursor, limit } = request
    const from = cursor === undefined ? 0 : Number(cursor)
    const items = Array.from({ length: Math.min(limit, 3, 7 - from) }, (_, i) => from + i)
    const next = from + items.length
    return JSON.stringify({ documents: items, done: next === 7, cursor: String(next) })
  }
  const driver = new Driver(`
    take: query((ctx) => ctx.db.table('notes').scan().take(5)),
    unread: query((ctx) => ({ notes: ctx.db.table('notes').scan().order('desc') })),
    collect: query((ctx) => ctx.db.table('notes').scan().collect()),
    walk: query(async (ctx) => {
      const all = []
      for await (const note of ctx.db.table('notes').scan().order('desc')) all.push(note)
      return all
    }),
    first: query((ctx) => ctx.db.table('notes').scan().first()),
    unique: query((ctx) => ctx.db.table('notes').scan().unique()),
    page: query((ctx) => ctx.db.table('notes').scan().paginate({ cursor: '2', limit: 2 })),
    equal: query((ctx) => ctx.db.table('notes').index('byBoth', (q) => q.eq('a', 1n).gt('b', 'x')
      .lte('b', 'y')).order('desc').take(1)),
    since: query((ctx) => ctx.db.table('notes')
      .index('byA', (q) => q.eq('a', 1).gte('_createdAt', 5n)).first()),
    patch: mutation((ctx) => ctx.db.patch('${ID}', { a: 1, b: undefined })),
    table: query((ctx) => ctx.db.table('noted')),
    index: query((ctx) => ctx.db.table('notes').index('byC')),
    field: query((ctx) => ctx.db.table('notes').index('byBoth', (q) => q.eq('b', 1))),
    order: query((ctx) => ctx.db.table('notes').index('byBoth', (q) => q.gt('a', 1).eq('a', 1))),
    twice: query((ctx) => ctx.db.table('notes').index('byA', (q) => q.gt('a', 1).gte('a', 1))),
    write: query((ctx) => ctx.db.insert('notes', {})),
    forgot: mutation(async (ctx) => {
      ctx.db.insert('notes', {})
      await ctx.db.get('${ID}')
    }),
    dangles: query(async (ctx) => { ctx.db.get('${ID}') }),
    waits: query(() => new Promise(() => {})),
    all: mutation(async (ctx) => (await Promise.all([
      ctx.db.insert('notes', {}), ctx.db.get('${ID}'), ctx.db.delete('${ID}'),
    ])).length),
    accessor: mutation((ctx) => ({ get a() { ctx.db.insert('notes', {}); return 1 } })),
    promise: mutation((ctx) => ({ id: ctx.db.insert('notes', {}) })),
    late: mutation((ctx) => { Promise.resolve().then(() => {}).then(() => ctx.db.delete('x')) }),`)
  const run = (name: string, kind = 'query') => driver.run(name, '{}', pages, kind)

  test('reads lists in pages', () => {
    expect(resultOf(run('take'))).toEqual([0, 1, 2, 3, 4])
    expect(resultOf(run('collect'))).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(resultOf(run('walk'))).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(run('walk').seen[0]).toMatchObject(['range', { order: 'desc', next: 'plain' }])
    expect(resultOf(run('first'))).toBe(0)
    expect(run('first').seen[0]).toMatchObject(['range', { limit: 1, next: 'none' }])
    expect(resultOf(run('page'))).toEqual({ items: [2, 3], cursor: '4', done: false })
    expect(errorOf(run('unique'))).toContain('"notes" has more than one such document')
  })

  test('sends the range that the code builds', () => {
    expect(run('equal').seen).toEqual([
      [
        'range',
        {
          table: 'notes',
          index: 'byBoth',
          equal: [{ $i: '1' }],
          field: 'b',
          lower: { value: 'x', inclusive: false },
          upper: { value: 'y', inclusive: true },
          order: 'desc',
          limit: 1,
          next: 'none',
        },
      ],
    ])
    expect(run('since').seen).toMatchObject([['range', { equal: [1], field: '_createdAt' }]])
    expect(run('patch', 'mutation').seen).toEqual([['patch', ID, { a: 1 }, ['b']]])
    expect(resultOf(run('all', 'mutation'))).toBe(3)
  })

  test.each([
    ['table', 'schema.ts declares no table "noted" (it has: notes)'],
    ['index', 'table "notes" has no index "byC" (it has: byBoth, byA)'],
    ['field', 'has the fields a, b: the next one is "a", not "b"'],
    ['order', 'eq stands before the bounds'],
    ['twice', '"a" has two lower bounds'],
    ['write', 'ctx.db.insert is a write in a Query: make the Function a mutation'],
    ['forgot', 'ctx.db.insert was not awaited: write "await" in front of it'],
    ['accessor', 'ctx.db.insert was not awaited: write "await" in front of it'],
    ['promise', 'ctx.db.insert was not awaited: write "await" in front of it'],
    ['dangles', 'an operation was still running when the Function ended: await each promise'],
    ['unread', 'is a list that was not read (end it with .collect(), .take(n) or .paginate())'],
    ['waits', 'waits for a promise that nothing will settle'],
    ['late', 'an operation was still running when the Function ended: await each promise'],
  ])('throws an error that names the fix: %s', (name, message) => {
    expect(errorOf(driver.run(name, '{}', name === 'late' ? () => null : pages))).toContain(message)
  })
})

const UNCHANGEABLE = '{ value: () => true, configurable: false }'

describe('errors', () => {
  const driver = new Driver(`
    fetches: query(() => fetch('http://x')),
    process: query(() => process.env),
    sleeps: query(() => setTimeout(() => {}, 1)),
    events: query(() => new EventTarget()),
    digests: query(() => crypto.subtle.digest('SHA-256', new Uint8Array())),
    assigns: query(() => { const map = new Map(); map.get = () => 1 }),
    limits: query(() => { Error.stackTraceLimit = 50 }),
    string: query(() => { throw 'text' }),
    nothing: query(() => { throw undefined }),
    fails: query((ctx) => ctx.fail(['OUT']), { errors: { OUT: 'conflict' } }),
    object: query(() => { throw { error: 'quota', left: 4n } }),
    nasty: query(() => {
      throw { get message() { throw 1 }, get name() { throw 2 }, toString: null }
    }),
    named: query(() => {
      class Own extends Error { constructor() { super('m'); this.name = 'Own' } }
      throw new Own()
    }),
    poisons: query(() => { Array.prototype.map = () => 'x'; return 1 }),
    adds: query(() => { Array.prototype.extra = 1; return 1 }),
    inherits: query(() => { Object.setPrototypeOf(Array.prototype, { extra: 1 }); return 1 }),
    indexes: query(() => { Array.prototype[0] = 1; return 1 }),
    deletes: query(() => { delete Array.prototype.map; return 1 }),
    defines: query(() => {
      Object.defineProperty(Array.prototype, 'extra', { value: 1, configurable: true })
      return 1
    }),
    definesBehind: query(() => {
      const { defineProperties } = Object
      const behind = new Proxy(Array.prototype, {})
      defineProperties(behind, { extra: { value: 1, configurable: true } })
      return 1
    }),
    definesStatic: query(() => {
      Reflect.defineProperty(Array, 'extra', { value: 1, configurable: true })
      return 1
    }),
    iterates: query(() => {
      Object.getPrototypeOf([].values()).next = () => ({ done: true })
      return 1
    }),
    gets: query(() => {
      const own = Array.prototype.map
      Array.prototype.__defineGetter__('map', () => own)
      return 1
    }),
    splices: query(() => { Array.prototype.splice = () => []; return 1 }),
    waits: query(async (ctx) => {
      Array.prototype.extra = 1
      await ctx.db.get('${ID}')
      return 1
    }),
    changesInGetter: query(() => ({ get a() { Array.prototype.extra = 1; return 1 } })),
    joins: query(() => ({
      get a() { console.log('x'); Array.prototype.join = () => '1]'; return 1 },
    })),
    logs: query(() => { Array.prototype.toJSON = () => 1; console.log('x'); return 1 }),
    logsWithin: query(() => {
      const logs = () => { for (let i = 0; i < 2_000; i++) console.log(i) }
      console.log({ toJSON: logs })
      return 1
    }),
    pushes: query(() => { Array.prototype.push = () => 0; return 1 }),
    splits: query(() => {
      Array.prototype.map = Array.prototype.filter = () => ({ join: () => undefined })
      throw { get stack() { Array.prototype.toJSON = () => 1; return '' } }
    }),
    continues: query(async (ctx) => {
      Array.prototype.extra = 1
      await ctx.db.get('${ID}')
      await new Promise(() => {})
    }),
    captures: query(() => { Error.captureStackTrace(Array.prototype); return 1 }),
    looks: query(() => [
      Reflect.ownKeys(Array.prototype).filter((key) => ['extra', 'stack', '0'].includes(key)),
      Object.keys(Array.prototype).length,
      'extra' in [],
      'extra' in Array,
      [...[1].map(String)][0],
    ]),
    describes: query(() => {
      const { name, length } = Object.defineProperty
      const made = Object.defineProperty({}, 'a', { value: 1 })
      return [name, length, made.a, Reflect.defineProperty(Object.freeze({}), 'a', { value: 1 })]
    }),
    freezes: query(() => {
      try { Object.prototype.extra = 1 } catch { return [1].map((it) => it + 1) }
    }),
    declares: query(() => { globalThis.state = 1 }),
    overrides: query(() => {
      const it = {}
      it.toString = () => 'own'
      it.constructor = 1
      return \`\${it}\`
    }),`)

  test.each([
    ['fetches', 'fetch is not defined: Queries and Mutations reach no network; do it in an Action'],
    [
      'process',
      'process is not defined: there is no process; read settings with ctx.config.variable("NAME")',
    ],
    [
      'sleeps',
      'setTimeout is not defined: Queries and Mutations have no timers; do it in an Action',
    ],
    ['events', 'EventTarget is not defined: only an AbortSignal has listeners'],
    ['digests', "'crypto.subtle.digest'): import a library that is written in JavaScript"],
    ['assigns', 'readonly property.: all calls share what is built in, with the names'],
    ['limits', 'readonly property.: all calls share what is built in, with the names'],
    ['string', 'Error: thrown: text'],
    ['nothing', 'Error: thrown: undefined'],
    ['object', 'Error: thrown: {"error":"quota","left":"4n"}'],
    ['nasty', 'Error: thrown'],
    ['fails', 'TypeError: ctx.fail("OUT")'],
    ['named', 'Own: m'],
    ['poisons', '"map" of Array or its prototype was changed, which all calls share'],
    ['adds', '"extra" of Array or its prototype was changed'],
    ['inherits', '"__proto__" of Array or its prototype was changed'],
    ['indexes', '"length" of Array or its prototype was changed'],
    ['deletes', '"map" of Array or its prototype was changed'],
    ['defines', '"extra" of Array or its prototype was changed'],
    ['definesBehind', '"extra" of Array or its prototype was changed'],
    ['definesStatic', '"extra" of Array or its prototype was changed'],
    ['iterates', '"next" of Array or its prototype was changed'],
    ['gets', '"map" of Array or its prototype was changed'],
    ['splices', '"splice" of Array or its prototype was changed'],
    ['waits', '"extra" of Array or its prototype was changed'],
    ['continues', '"extra" of Array or its prototype was changed'],
    ['changesInGetter', '"extra" of Array or its prototype was changed'],
    ['joins', '"join" of Array or its prototype was changed'],
    ['logs', '"toJSON" of Array or its prototype was changed'],
    ['pushes', '"push" of Array or its prototype was changed'],
    ['splits', '"filter" of Array or its prototype was changed'],
    ['captures', '"stack" of Array or its prototype was changed'],
    ['declares', 'TypeError'],
  ])('changes of a prototype are reported with a fix: %s: %s', (name, message) => {
    expect(errorOf(driver.run(name))).toContain(message)
  })

  test('no change is reported when data that is logged logs more lines than a call may', () => {
    expect(resultOf(driver.run('logsWithin'))).toBe(1)
  })

  test('changes by one call leave nothing behind for the next', () => {
    const changes = ['poisons', 'adds', 'inherits', 'indexes', 'deletes', 'defines']
    const more = ['definesBehind', 'definesStatic', 'iterates', 'captures', 'splices', 'waits']
    for (const name of [...changes, ...more, 'gets', 'changesInGetter']) {
      driver.run(name)
      expect(resultOf(driver.run('looks'))).toEqual([[], 0, false, false, '1'])
    }
    expect(resultOf(driver.run('freezes'))).toEqual([2])
    expect(resultOf(driver.run('overrides'))).toBe('own')
    expect(resultOf(driver.run('describes'))).toEqual(['defineProperty', 3, 1, false])
  })

  test.each([
    ['extra', `Object.defineProperty(Array.prototype, 'extra', { value: 1 })`],
    ['includes', `Reflect.defineProperty(Array.prototype, 'includes', ${UNCHANGEABLE})`],
    ['map', `Object.defineProperty(Array.prototype, 'map', { configurable: false })`],
    ['length', 'Object.freeze(Array.prototype)'],
    ['next', 'Object.seal(new Proxy(Object.getPrototypeOf([].values()), {}))'],
    ['a property', 'Object.preventExtensions(Array)'],
  ])('changes that cannot be undone end the process: %s by %s', (name, code) => {
    const driver = new Driver(`breaks: query(() => { ${code}; return 1 })`)
    const message = `"${name}" of Array or its prototype was changed irreversibly`
    expect(() => driver.run('breaks')).toThrow(message)
  })

  test.each([
    ['this is not', 'SyntaxError'],
    ['throw new RangeError("x")', 'RangeError'],
  ])('errors in the script are reported when it loads: %s', (text, name) => {
    const { loaded } = new Driver(`} } }); ${text}; ({ a: { b: {`)
    expect(loaded).toMatchObject({ type: 'loadFailed', error: { name } })
  })
})
