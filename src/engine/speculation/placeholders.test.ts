/**
 * Goal: the code of a Function cannot tell placeholders from documents. Method: a real runner and
 * every kind of look into a document; then an engine over real documents.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { type Answering, heldHost, poolBench, recordingHost } from '../../../testing/runners.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { encodeStored } from '../../value/stored.ts'
import type { Value } from '../../value/values.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
import { returnedValue } from '../calls/returned-documents.ts'

/** Expressions that look into the document `doc`. */
const LOOKS: Readonly<Record<string, string>> = {
  field: 'doc.text',
  missingField: 'doc.missing',
  symbol: 'doc[Symbol.toPrimitive]',
  has: '"text" in doc',
  own: 'Object.hasOwn(doc, "text")',
  keys: 'Object.keys(doc)',
  loop: '(() => { for (const key in doc) return key })()',
  spread: '({ ...doc })',
  copy: 'structuredClone(doc)',
  json: 'JSON.stringify(doc)',
  text: 'String(doc)',
  set: 'doc.text = "other"',
  define: 'Object.defineProperty(doc, "text", { value: 1 })',
  remove: 'delete doc.text',
  freeze: 'Object.freeze(doc)',
  frozen: 'Object.isFrozen(doc)',
  prototype: 'Object.getPrototypeOf(doc)',
  newPrototype: 'Object.setPrototypeOf(doc, null)',
  instance: 'doc instanceof Map',
  method: 'doc.hasOwnProperty("text")',
  log: 'console.log("found", doc)',
  argument: 'await ctx.runQuery(ref("query", "nothing"), { doc })',
  caught: '(() => { try { return doc.text } catch { return "caught" } })()',
}
/** Expressions that do not, with their values. */
const HOLDS: Readonly<Record<string, string>> = {
  same: 'doc === doc',
  type: 'typeof doc',
  present: 'doc !== null && !!doc',
  list: 'Array.isArray(doc)',
  key: 'new Map([[doc, 1]]).get(doc)',
  weak: 'new WeakSet([doc]).has(doc)',
  wrapped: '[{ deep: [doc] }]',
  awaited: 'await Promise.resolve(doc)',
  raced: 'await Promise.race([doc])',
}

const looking = Object.entries({ ...LOOKS, ...HOLDS }).map(
  ([name, code]) => `${name}: query(async (ctx, { id }) => {
    const doc = await ctx.db.get(id)
    const value = ${code}
    return [value === undefined ? null : value, doc]
  }),`,
)
const FUNCTIONS = `
  ${looking.join('\n')}
  one: query((ctx, { id }) => ctx.db.get(id)),
  all: query((ctx) => ctx.db.table('notes').scan().collect()),
  count: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).length),
  throws: query(async (ctx, { id }) => { throw await ctx.db.get(id) }),
  keeps: query(async (ctx, { id }) => (kept = await ctx.db.get(id))),
  returnsKept: query(() => kept),
  looksAtKept: mutation(() => kept?.text ?? 'nothing is kept'),
  nothing: query(() => null),`
const SCHEMA = `tables({ notes: { fields: { text: { type: 'string' } }, indexes: [] } })`
/** Code may keep what it reads for later calls, although a runner may end between them. */
const PRELUDE = 'let kept = null\n'

const { pool, call, release } = poolBench({ size: 1 })
const written = release(FUNCTIONS, SCHEMA)
const code = { ...written, source: `${PRELUDE}${written.source}` }
beforeAll(async () => {
  await pool.start({ sandbox: 'preferred' })
})
afterAll(() => pool.close())

function documentOf(number: number): StoredDocument {
  const id = `notes_${String(number).padStart(26, '0')}`
  return { id, createdAtMicros: 5n, sequence: number, text: `{"text":"${number}"}` }
}
const document = documentOf(1)

/** Replies to a read by ID with one document, and to a range with `count` of them. */
const answersOf =
  (count: number): Answering =>
  ([type]) => {
    if (type !== 'range') return { documents: [document], page: null }
    const documents = Array.from({ length: count }, (_, i) => documentOf(i + 1))
    return { documents, page: { cursor: null, done: true } }
  }

function callOf(name: string, more: object = {}) {
  const argumentsText = JSON.stringify({ id: document.id })
  return { ...call(name, { argumentsText, prefetched: [] }), placeholders: true, ...more }
}

function run(name: string, more: object = {}, host = recordingHost(answersOf(3))) {
  return pool.invoke(code, callOf(name, more), host)
}

function resultOf(outcome: RunnerOutcome): string {
  assert(outcome.kind === 'returned', outcome.kind)
  return encodeStored(returnedValue(outcome.result, outcome.documents))
}

const MISREAD = { kind: 'misspeculated', cause: 'read' }

test.each(Object.keys(LOOKS))('a look into a placeholder ends the call: %s', async (name) => {
  expect(await run(name)).toEqual(MISREAD)
  expect(await run(name, { prefetched: [document] })).toEqual(MISREAD)
  expect(await run(name, { placeholders: false })).toMatchObject({
    kind: expect.stringMatching(/^returned|threw$/),
  })
})

test.each(Object.keys(HOLDS))('a placeholder serves as the document: %s', async (name) => {
  const documents = resultOf(await run(name, { placeholders: false }))
  expect(resultOf(await run(name))).toBe(documents)
  expect(resultOf(await run(name, { prefetched: [document] }))).toBe(documents)
})

describe('a Function that looks into no document', () => {
  test.each(['one', 'all', 'count'])('reads and returns the same: %s', async (name) => {
    const hosts = [recordingHost(answersOf(3)), recordingHost(answersOf(3))] as const
    const result = resultOf(await run(name, { placeholders: false }, hosts[0]))
    expect(resultOf(await run(name, {}, hosts[1]))).toBe(result)
    expect(hosts[1].seen).toEqual(hosts[0].seen)
  })

  test('a call receives documents that its result could not name', async () => {
    const named = await run('all', {}, recordingHost(answersOf(1_024)))
    const more = await run('all', {}, recordingHost(answersOf(1_025)))
    assert(named.kind === 'returned' && more.kind === 'returned', 'both return')
    expect((named.result as unknown[]).at(-1)).toEqual({ $r: 1_023 })
    expect((more.result as unknown[]).at(-1)).toMatchObject({ text: '1025' })
  })
})

test('a call that throws a placeholder is misspeculated', async () => {
  expect(await run('throws')).toEqual(MISREAD)
})

describe('a placeholder that the code keeps', () => {
  const synchronous = { prefetched: undefined, placeholders: false }

  test.each(['returnsKept', 'looksAtKept'])(
    'ends the runner when a later call looks into it: %s',
    async (name) => {
      expect(await run('keeps')).toMatchObject({ kind: 'returned' })
      const held = heldHost(answersOf(1))
      const other = run('one', synchronous, held.host)
      await held.received(1)
      const kind = name === 'looksAtKept' ? 'mutation' : 'query'
      const outcome = await run(name, { ...synchronous, kind })
      expect(outcome).toEqual({ kind: 'misspeculated', cause: 'kept' })
      expect(await other).toEqual({ kind: 'lost' })
      held.letGo()
      // The next runner has kept nothing.
      const again = await run('looksAtKept', { ...synchronous, kind: 'mutation' })
      expect(resultOf(again)).toBe('"nothing is kept"')
    },
  )
})

const COUNTED = { arguments: { n: { type: 'int64' } } }
const ENGINE_FUNCTIONS = `
  add: mutation((ctx, { text }) => ctx.db.insert('notes', { text }), {
    arguments: { text: { type: 'string' } },
  }),
  looks: query(async (ctx) => {
    runs += 1
    const [first] = await ctx.db.table('notes').scan().take(1)
    return { runs: BigInt(runs), text: first.text }
  }, ${JSON.stringify(COUNTED)}),
  keeps: query(async (ctx) => (kept = await ctx.db.table('notes').scan().first()),
    ${JSON.stringify(COUNTED)}),
  looksAtKept: query(() => kept?.text ?? 'nothing is kept', ${JSON.stringify(COUNTED)}),
  then: query(async (ctx) => (await ctx.db.table('thens').scan().first()).then),
  addThen: mutation((ctx) => ctx.db.insert('thens', { then: 'a field' })),`

describe('in an engine', () => {
  let bench: EngineBench
  let calls = 0n
  /** Calls with another argument each time, so that no result is a cached one. */
  const invoke = (name: string) => bench.call(name, { n: ++calls })
  beforeAll(async () => {
    const prelude = `${PRELUDE}let runs = 0\n`
    bench = await engineBench(ENGINE_FUNCTIONS, { schema: SCHEMA, prelude })
    await bench.call('add', { text: 'first' })
  })
  afterAll(() => bench.close())

  test('only the first call of a Query that looks into documents runs twice', async () => {
    for (const runs of [2n, 3n, 4n]) {
      const found = new Map<string, Value>([
        ['runs', runs],
        ['text', 'first'],
      ])
      expect(await invoke('looks')).toEqual(found)
    }
  })

  test('code that keeps documents is given no placeholder again', async () => {
    const first = await invoke('keeps')
    expect(await invoke('looksAtKept')).toBe('nothing is kept')
    expect(await invoke('keeps')).toEqual(first)
    expect(await invoke('looksAtKept')).toBe('first')
  })

  test('a document with a field that promises ask for is read as it is', async () => {
    const schema = `tables({ thens: { fields: { then: { type: 'string' } }, indexes: [] } })`
    const release = await bench.addRelease(ENGINE_FUNCTIONS, schema)
    await bench.call('addThen', {}, { release })
    expect(await bench.call('then', {}, { release })).toBe('a field')
  })
})
