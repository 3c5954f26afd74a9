/**
 * Goal: a speculative call differs from a synchronous one only in speed. Method: the whole engine
 * on real documents and real runners; the test records each attempt and can delay its commit.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { TypedId, type Value } from '../../value/values.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'

const ID = `{ id: { type: 'id', table: 'notes' } }`
const IDS = `{ ids: { type: 'array', items: { type: 'id', table: 'notes' } } }`
const SCHEMA = `tables({
  notes: { fields: { text: { type: 'string' } }, indexes: [] },
  names: { fields: { name: { type: 'string' } }, indexes: [
    { name: 'byName', fields: ['name'], unique: true },
  ] },
})`
const FUNCTIONS = `
  add: mutation((ctx, { text }) => ctx.db.insert('notes', { text }), {
    arguments: { text: { type: 'string' } }, returns: { type: 'id', table: 'notes' },
  }),
  set: mutation(async (ctx, { id, text }) => { await ctx.db.patch(id, { text }) }, {
    arguments: { id: { type: 'id', table: 'notes' }, text: { type: 'string' } },
  }),
  remove: mutation(async (ctx, { id }) => { await ctx.db.delete(id) }, { arguments: ${ID} }),
  text: query(async (ctx, { id }) => (await ctx.db.get(id)).text, { arguments: ${ID} }),
  idle: query((ctx, { id }) => typeof id, { arguments: ${ID} }),
  named: query(async (ctx, { name }) => {
    const find = (name) => ctx.db.table('names').index('byName', (q) => q.eq('name', name)).first()
    if (name === 'none') return null
    const found = await find(name)
    const twice = await find(name)
    if (found !== null) found.name += '!'
    return [found?.name ?? null, twice?.name ?? null]
  }, { arguments: { name: { type: 'string' } } }),
  all: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).map((it) => it._id)),
  nested: mutation(async (ctx) => {
    const ids = []
    const insert = async (text) => ids.push(await ctx.db.insert('notes', { text }))
    await insert('a')
    await insert('b')
    ids.push(await ctx.runMutation(ref('mutation', 'two')))
    await insert('e')
    const [f, g] = await Promise.all([
      ctx.db.insert('notes', { text: 'f' }), ctx.db.insert('notes', { text: 'g' }),
    ])
    ids.push(f, g)
    return [ids.flat(), (await ctx.db.table('notes').scan().collect()).map((it) => it._id)]
  }),
  two: mutation(async (ctx) => Promise.all(['c', 'd'].map(
    (text) => ctx.db.insert('notes', { text })))),
  copy: mutation(async (ctx, { id }) => {
    const { text } = await ctx.db.get(id)
    return ctx.db.insert('notes', { text: text + ' copied' })
  }, { arguments: ${ID} }),
  blind: mutation((ctx, { id }) => ctx.db.insert('notes', { text: id }), { arguments: ${ID} }),
  refers: mutation(async (ctx, { ids }) => {
    const [last, first] = [await ctx.db.get(ids[2]), await ctx.db.get(ids[0])]
    await ctx.db.patch(ids[0], { text: 'changed' })
    return [first, last, await ctx.db.get(ids[0])]
  }, { arguments: ${IDS} }),
  lists: query(async (ctx, { ids }) => {
    const all = []
    for (const id of ids.toReversed()) all.push(await ctx.db.get(id))
    all[1].text += '!'
    return all
  }, { arguments: ${IDS} }),
  resets: mutation(async (ctx, { id }) => {
    await ctx.db.get(id)
    await ctx.runMutation(ref('mutation', 'set'), { id, text: 'by another' })
    const changed = (await ctx.db.get(id)).text
    await ctx.db.delete(id)
    return [changed, await ctx.db.get(id)]
  }, { arguments: ${ID} }),
  usage: query(async (ctx, { ids }) => {
    for (const id of ids) await ctx.db.get(id)
    const { documentsRead, bytesRead } = await ctx.usage()
    return [documentsRead.used, bytesRead.used]
  }, { arguments: ${IDS} }),
  wrong: mutation(async (ctx, { isWrong }) => {
    ctx.log.info('before')
    await ctx.db.insert('notes', { text: isWrong ? 5 : 'right' })
    ctx.log.info('behind')
    return 'done'
  }, { arguments: { isWrong: { type: 'boolean' } } }),
  missing: mutation(async (ctx, { id }) => {
    await ctx.db.insert('notes', { text: 'lost' })
    await ctx.db.patch(id, { text: 'x' })
  }, { arguments: ${ID} }),
  name: mutation(async (ctx, { name }) => { await ctx.db.insert('names', { name }) }, {
    arguments: { name: { type: 'string' } },
  }),
  names: mutation(async (ctx, { name }) => {
    try { await ctx.db.insert('names', { name }) } catch (error) { return error.name }
    return 'free'
  }, { arguments: { name: { type: 'string' } } }),
  calls: mutation(async (ctx, { isWrong, caught }) => {
    ctx.log.info('calls')
    const called = ctx.runMutation(ref('mutation', 'wrong'), { isWrong })
    const result = await (caught ? called.catch((error) => error.name) : called)
    await ctx.db.insert('notes', { text: caught ? 'caught' : 5 })
    return result
  }, { arguments: { isWrong: { type: 'boolean' }, caught: { type: 'boolean' } } }),
  accessor: mutation((ctx) => ({ get a() { ctx.db.insert('notes', { text: 7 }); return 1 } })),
  forgets: mutation(async (ctx) => {
    ctx.db.insert('notes', { text: 'forgotten' })
  }),
  dangles: query(async (ctx) => {
    ctx.db.table('notes').scan().first()
  }),
  page: query(async (ctx, { cursor }) => {
    const { items } = await ctx.db.table('notes').scan().paginate({ cursor, limit: 1 })
    return items
  }, { arguments: { cursor: { type: 'string' } } }),
  many: mutation(async (ctx, { count }) => {
    const text = 'x'.repeat(900)
    for (let i = 0n; i < count; i++) await ctx.db.insert('notes', { text })
    return (await ctx.usage()).documentsWritten.used
  }, { arguments: { count: { type: 'int64' } } }),
  clear: mutation(async (ctx) => {
    for await (const it of ctx.db.table('notes').scan()) await ctx.db.delete(it._id)
  }),`

interface Attempt {
  readonly name: string
  /** IDs of the prefetched documents; null for a synchronous attempt. */
  readonly prefetched: readonly string[] | null
  /** Operations of the prefetched pages. */
  readonly pages: readonly string[]
  /** Null where its host ended it. */
  kind: RunnerOutcome['kind'] | null
}

let bench: EngineBench
const attempts: Attempt[] = []
/** Delays of the attempts before they commit, by Function. */
const gates = new Map<string, () => Promise<void>>()

beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
  const { pool } = bench
  const invoke = pool.invoke.bind(pool)
  pool.invoke = async (code, call, host) => {
    const name = call.function.slice(2)
    const prefetched = call.prefetched?.map(({ id }) => id) ?? null
    const pages = call.prefetchedPages?.map(({ operation }) => operation) ?? []
    const attempt: Attempt = { name, prefetched, pages, kind: null }
    attempts.push(attempt)
    const outcome = await invoke(code, call, host)
    attempt.kind = outcome.kind
    await gates.get(name)?.()
    return outcome
  }
})
afterAll(() => bench.close())
beforeEach(async () => {
  await bench.call('clear')
  attempts.length = 0
})

const add = async (text: string) => (await bench.call('add', { text })) as TypedId
const attemptsOf = (name: string) => attempts.filter((attempt) => attempt.name === name)
const kindsOf = (name: string) => attemptsOf(name).map(({ kind }) => kind)
const modesOf = (name: string) => attemptsOf(name).map(({ prefetched }) => prefetched !== null)
const textOf = (id: TypedId) => bench.call('text', { id })
const fieldsOf = (document: Value): Readonly<Record<string, Value>> =>
  Object.fromEntries(document as ReadonlyMap<string, Value>)

/** Runs a call and commits `other` between its first attempt and its commit. */
async function between(name: string, input: Record<string, Value>, other: () => Promise<unknown>) {
  gates.set(name, async () => {
    gates.delete(name)
    await other()
  })
  return bench.call(name, input)
}

/** Returns the outcome of a call and the records that it adds to the log. */
async function linesOf(call: () => Promise<unknown>) {
  const before = bench.log.records().length
  const outcome = await call().catch((error: unknown) => error)
  return { outcome, lines: bench.log.records().slice(before) }
}

const logged = (lines: ReturnType<EngineBench['log']['records']>) =>
  lines.filter(({ event }) => event === 'function.log').map(({ message }) => message)

/** Returns the location of the text in the code of the Release, as a trace shows it. */
function locationOf(text: string): string {
  const lines = bench.release.source.split('\n')
  return `release.js:${lines.findIndex((line) => line.includes(text)) + 1}:`
}

test('the IDs that inserts return are the stored ones, in the order of the inserts', async () => {
  const [seen, scanned] = (await bench.call('nested')) as [string[], string[]]
  expect(attemptsOf('nested')).toMatchObject([{ prefetched: [], kind: 'returned' }])
  const stored = await bench.call('all')
  expect(seen).toEqual(stored)
  expect(scanned).toEqual(stored)
  expect(new Set(seen).size).toBe(7)
  const texts = seen.map((id) => textOf(new TypedId(id)))
  expect(await Promise.all(texts)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
})

describe('a range that the arguments predict', () => {
  const named = (name: string) => bench.call('named', { name })
  // The first call looks into a placeholder, and runs again.
  const pagesOf = () =>
    attemptsOf('named')
      .filter(({ kind }) => kind !== 'misspeculated')
      .map(({ pages }) => pages.length)

  test('the fifth call receives it, and no call does after one that left it unread', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await bench.call('name', { name })
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const isStored = name !== 'f'
      expect(await named(name)).toEqual(isStored ? [`${name}!`, name] : [null, null])
    }
    expect(pagesOf()).toEqual([0, 0, 0, 0, 1, 1])
    expect(attemptsOf('named').at(-2)!.pages[0]).toContain('["e"]')
    expect(await named('none')).toBeNull()
    expect(await named('a2')).toEqual([null, null])
    expect(pagesOf().slice(-2)).toEqual([1, 0])
  })

  test('a cached result depends on a prefetched range', { tags: ['slow'] }, async () => {
    const release = await engineBench(FUNCTIONS, { schema: SCHEMA })
    try {
      for (const name of ['a', 'b', 'c', 'd']) await release.call('named', { name })
      expect(await release.call('named', { name: 'e' })).toEqual([null, null])
      // A result is cached from the second request on.
      for (let i = 0; i < 3; i++) await release.call('named', { name: 'e' })
      await release.call('name', { name: 'e' })
      expect(await release.call('named', { name: 'e' })).toEqual(['e!', 'e'])
    } finally {
      await release.close()
    }
  })
})

describe('a document that the arguments name', () => {
  test('a document of the arguments is prefetched, and joins the read set when read', async () => {
    const id = await add('old')
    const copied = await between('copy', { id }, () => bench.call('set', { id, text: 'new' }))
    const attempt = { name: 'copy', prefetched: [id.id], pages: [], kind: 'returned' }
    expect(attemptsOf('copy')).toEqual([attempt, attempt])
    // Every attempt inserts the same ID.
    expect(await textOf(new TypedId(copied as string))).toBe('new copied')
  })

  test('causes no conflict where it was not read', async () => {
    const id = await add('old')
    await between('blind', { id }, () => bench.call('set', { id, text: 'new' }))
    const attempt = { name: 'blind', prefetched: [id.id], pages: [], kind: 'returned' }
    expect(attemptsOf('blind')).toEqual([attempt])
  })

  test('invalidates a cached result only where it was read', async () => {
    const id = await add('old')
    const callFourTimes = async (name: string) => {
      // A result is cached from the second request on.
      for (let i = 0; i < 3; i++) await bench.call(name, { id })
      return [await bench.call(name, { id }), attemptsOf(name).length]
    }
    expect(await callFourTimes('text')).toEqual(['old', 2])
    expect(await callFourTimes('idle')).toEqual(['string', 2])
    await bench.call('set', { id, text: 'new' })
    expect((await callFourTimes('text'))[0]).toBe('new')
    expect(await callFourTimes('idle')).toEqual(['string', 2])
  })

  test('a document that the arguments name is not prefetched after it was deleted', async () => {
    const id = await add('old')
    await bench.call('remove', { id })
    await expect(textOf(id)).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    expect(attemptsOf('text')).toMatchObject([{ prefetched: [], kind: 'threw' }])
  })

  test('named documents are read from the store for a Function that reads them', async () => {
    const { id } = await add('stored')
    const cached = vi.spyOn(bench.store, 'findCached').mockReturnValue(undefined)
    try {
      for (const name of ['copy', 'blind']) {
        for (let i = 0; i < 2; i++) await bench.call(name, { id: new TypedId(id) })
      }
    } finally {
      cached.mockRestore()
    }
    expect(attemptsOf('copy').map(({ prefetched }) => prefetched)).toEqual([[id], [id]])
    expect(attemptsOf('blind')[1]!.prefetched).toEqual([])
    // One that is in memory is sent in any case.
    await bench.call('blind', { id: new TypedId(id) })
    expect(attemptsOf('blind').at(-1)).toMatchObject({ prefetched: [id] })
  })

  test('a prefetched document may be returned unchanged, changed and in any order', async () => {
    const ids = [await add('one'), await add('two'), await add('three')]
    const listed = (await bench.call('lists', { ids })) as Value[]
    expect(listed.map((each) => fieldsOf(each).text)).toEqual(['three', 'two!', 'one'])
    expect(listed.map((each) => fieldsOf(each)._id)).toEqual(ids.map(({ id }) => id).toReversed())
    const [first, last, changed] = (await bench.call('refers', { ids })) as Value[]
    const texts = [first!, last!, changed!].map((each) => fieldsOf(each).text)
    expect(texts).toEqual(['one', 'three', 'changed'])
    const prefetched = ids.map(({ id }) => id)
    expect(attemptsOf('refers')).toMatchObject([{ prefetched, kind: 'returned' }])
  })

  test('a prefetched document is read again after a write, even of a called Mutation', async () => {
    const id = await add('old')
    expect(await bench.call('resets', { id })).toEqual(['by another', null])
    expect(attemptsOf('resets')).toMatchObject([{ prefetched: [id.id], kind: 'returned' }])
  })

  test('counts as read once per read', async () => {
    const [a, b] = [await add('one'), await add('two')]
    const [documents, bytes] = (await bench.call('usage', { ids: [a, b, a] })) as bigint[]
    expect(attemptsOf('usage')).toMatchObject([{ prefetched: [a.id, b.id, a.id] }])
    expect(kindsOf('usage')).toEqual(['returned'])
    expect([Number(documents), Number(bytes)]).toEqual([3, 3 * '{"text":"one"}'.length])
  })
})

describe('a rejected operation', () => {
  /** Calls a Function until its next call is speculative. */
  const untilSpeculative = async (name: string, input: Record<string, Value>) => {
    for (let i = 0; i < 65; i++) await bench.call(name, input).catch(() => undefined)
    attempts.length = 0
  }

  test.each([
    [
      'a value',
      'wrong',
      async () => ({ isWrong: true }),
      'notes.text must be a string',
      'isWrong ?',
    ],
    [
      'a document that is not there',
      'missing',
      async () => {
        const id = await add('gone')
        await bench.call('remove', { id })
        return { id }
      },
      'there is no document',
      "ctx.db.patch(id, { text: 'x' })",
    ],
    [
      'a key that is taken',
      'name',
      async () => {
        await bench.call('name', { name: 'taken' }).catch(() => undefined)
        attempts.length = 0
        return { name: 'taken' }
      },
      'another document has the same name',
      'name: mutation(',
    ],
  ] as const)('fails the call once, at its location: %s', async (_, name, prepare, message, at) => {
    const input: Record<string, Value> = await prepare()
    const { outcome, lines } = await linesOf(() => bench.call(name, input))
    expect(kindsOf(name)).toEqual(['misspeculated', 'threw'])
    expect(modesOf(name)).toEqual([true, false])
    const code = name === 'name' ? 'UNIQUE_VIOLATION' : 'FUNCTION_FAILED'
    expect(outcome).toMatchObject({ code })
    const failed = lines.filter(({ event }) => event === 'function.failed')
    expect(failed).toHaveLength(1)
    expect(failed[0]?.message).toContain(message)
    expect(String(failed[0]?.trace)).toContain(locationOf(at))
    expect(await bench.call('all')).toEqual([])
  })

  test('writes the log lines of the repeated attempt only', { tags: ['slow'] }, async () => {
    await untilSpeculative('wrong', { isWrong: false })
    const { lines } = await linesOf(() => bench.call('wrong', { isWrong: true }))
    expect(kindsOf('wrong')).toEqual(['misspeculated', 'threw'])
    expect(logged(lines)).toEqual(['before'])
  })

  test('a rejection in a called Function has its location and can be caught', async () => {
    const { outcome, lines } = await linesOf(() =>
      bench.call('calls', { isWrong: true, caught: true }),
    )
    expect(outcome).toBe('TypeError')
    expect(attemptsOf('calls')).toMatchObject([{ prefetched: [], kind: 'returned' }])
    expect(lines.map(({ message }) => message)).toEqual([
      'before',
      expect.stringContaining('notes.text must be a string'),
      'calls',
    ])
    const uncaught = await linesOf(() => bench.call('calls', { isWrong: true, caught: false }))
    expect(attemptsOf('calls')[1]).toMatchObject({ prefetched: [], kind: 'threw' })
    expect(JSON.stringify(uncaught.lines.at(-1))).toContain(
      locationOf("ref('mutation', 'wrong'), { isWrong })"),
    )
  })

  test('writes the lines of called Functions once although the caller runs again', async () => {
    const { lines } = await linesOf(() => bench.call('calls', { isWrong: false, caught: false }))
    expect(kindsOf('calls')).toEqual(['misspeculated', 'threw'])
    expect(logged(lines)).toEqual(['before', 'behind', 'calls'])
    expect(lines.filter(({ event }) => event === 'function.failed')).toHaveLength(1)
  })

  test('a rejection is caught by the code as in a synchronous call', async () => {
    await bench.call('name', { name: 'held' })
    const caught = [await bench.call('names', { name: 'held' })]
    expect(kindsOf('names')).toEqual(['misspeculated', 'returned'])
    caught.push(await bench.call('names', { name: 'held' }))
    expect(attemptsOf('names')[2]).toMatchObject({ prefetched: null, kind: 'returned' })
    expect(caught).toEqual(['UniqueViolation', 'UniqueViolation'])
    expect(await bench.call('names', { name: 'unheld' })).toBe('free')
  })

  test('fails with ARGUMENTS_INVALID where a cursor is invalid', async () => {
    const outcome = bench.call('page', { cursor: 'made up' })
    await expect(outcome).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
    expect(kindsOf('page')).toEqual(['misspeculated', 'threw'])
  })

  test('makes the next 64 calls of the Function synchronous, and no others', {
    tags: ['slow'],
  }, async () => {
    await untilSpeculative('wrong', { isWrong: false })
    await bench.call('wrong', { isWrong: false })
    await bench.call('wrong', { isWrong: true }).catch(() => undefined)
    expect(modesOf('wrong')).toEqual([true, true, false])
    attempts.length = 0
    for (let i = 0; i < 66; i++) await bench.call('wrong', { isWrong: false })
    expect(modesOf('wrong')).toEqual([...Array(64).fill(false), true, true])
    await add('another Function')
    expect(attemptsOf('add')).toMatchObject([{ prefetched: [] }])
  })
})

test.each([
  ['accessor', 'ctx.db.insert was not awaited: write "await" in front of it', 'text: 7'],
  ['forgets', 'ctx.db.insert was not awaited: write "await" in front of it', "text: 'forgotten'"],
  ['dangles', 'an operation was still running when the Function ended', 'scan().first()'],
])('%s fails as a synchronous call: %s', async (name, message, at) => {
  const { outcome, lines } = await linesOf(() => bench.call(name))
  expect(outcome).toMatchObject({ code: 'FUNCTION_FAILED' })
  expect(kindsOf(name)).toEqual(['misspeculated', 'threw'])
  const failed = lines.filter(({ event }) => event === 'function.failed')
  expect(failed).toHaveLength(1)
  expect(failed[0]?.message).toContain(message)
  expect(String(failed[0]?.trace)).toContain(locationOf(at))
  expect(await bench.call('all')).toEqual([])
})

describe('the bounds', () => {
  test('allow 8,192 documents of 900 bytes in one speculative attempt', {
    tags: ['slow'],
  }, async () => {
    expect(await bench.call('many', { count: 8_192n })).toBe(8_192)
    expect(attemptsOf('many')).toMatchObject([{ prefetched: [], kind: 'returned' }])
    expect(await bench.call('all')).toHaveLength(8_192)
  })

  test('reject one document more with LIMIT_EXCEEDED in one attempt', {
    tags: ['slow'],
  }, async () => {
    await expect(bench.call('many', { count: 8_193n })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: expect.stringContaining('documents written'),
    })
    expect(attemptsOf('many')).toMatchObject([{ prefetched: [], kind: null }])
  })

  test('reject a document that is too long with LIMIT_EXCEEDED in one attempt', async () => {
    await expect(add('x'.repeat(1_100_000))).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: expect.stringContaining('document bytes'),
    })
    expect(attemptsOf('add')).toMatchObject([{ prefetched: [], kind: null }])
    expect(bench.log.text()).not.toContain('runner.stopped')
  })
})
