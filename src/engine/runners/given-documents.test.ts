/**
 * Goal: a prefetched document reads the same as one that the call requests, and the runner reports
 * the read to the server. Method: a real runner; results and operations are compared with the same
 * call without prefetched documents.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answering, heldHost, poolBench, recordingHost } from '../../../testing/runners.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import { encodeStored } from '../../value/stored.ts'
import type { RunnerHost, RunnerOutcome } from '../calls/outcomes.ts'
import { returnedValue } from '../calls/returned-documents.ts'

const { pool, call, release } = poolBench()
const code = release(
  `
  reads: query(async (ctx, { ids }) => {
    const found = []
    for (const id of ids) found.push(await ctx.db.get(id))
    return found
  }),
  spoils: query(async (ctx, { id }) => {
    const [a, b] = [await ctx.db.get(id), await ctx.db.get(id)]
    a.text = 'spoiled'
    a.tags.push('spoiled')
    return [a, b, a === b]
  }),
  rereads: mutation(async (ctx, { id, how }) => {
    const before = await ctx.db.get(id)
    if (how === 'runMutation') await ctx.runMutation(ref('mutation', 'nothing'))
    else await ctx.db[how](how === 'insert' ? 'notes' : id, { text: 'new' })
    return [before, await ctx.db.get(id)]
  }),
  dangles: query(async (ctx, { id }) => { ctx.db.get(id) }),
  races: query(async (ctx, { ids }) => {
    const order = []
    const read = async (id) => { await ctx.db.get(id); order.push(id) }
    await Promise.all(ids.map(read))
    return order
  }),
  nothing: mutation(() => null),
  usage: query(async (ctx, { id }) => {
    await ctx.db.get(id)
    return await ctx.usage()
  }),`,
  `tables({ notes: { fields: {}, indexes: [] } })`,
)

beforeAll(async () => {
  await pool.start({ sandbox: 'preferred' })
  await pool.warm(code)
})
afterAll(() => pool.close())

const ALL = new Map<string, StoredDocument>()
function documentOf(number: number, text = `{"tags":[],"text":"${number}"}`): StoredDocument {
  const id = `notes_${String(number).padStart(26, '0')}`
  return { id, createdAtMicros: 5n, sequence: number, text }
}
function stored(number: number): StoredDocument {
  const document = documentOf(number)
  ALL.set(document.id, document)
  return document
}
const [first, second, third, other] = [stored(1), stored(2), stored(3), stored(4)]
const given = [first, second, third]

const answers: Answering = (operation) => {
  if (operation[0] !== 'get') return 'null'
  const document = ALL.get(operation[1])
  return { documents: document === undefined ? [] : [document], page: null }
}

interface InvokeOptions {
  readonly input: object
  readonly kind?: 'query' | 'mutation'
  readonly prefetched?: readonly StoredDocument[]
}

function invoke(name: string, host: RunnerHost, options: InvokeOptions) {
  const { input, kind = 'query', prefetched } = options
  const argumentsText = JSON.stringify(input)
  return pool.invoke(
    code,
    call(name, { kind, argumentsText, ...(prefetched && { prefetched }) }),
    host,
  )
}

/** Returns the result as stored JSON, with the documents in place of their references. */
function resultOf(outcome: RunnerOutcome): string {
  assert(outcome.kind === 'returned', outcome.kind)
  return encodeStored(returnedValue(outcome.result, outcome.documents))
}

/** Runs a call in both modes, expects equal results and operations, and returns the result. */
async function bothWays(name: string, input: object, prefetched = given) {
  const hosts = [recordingHost(answers), recordingHost(answers)] as const
  const result = resultOf(await invoke(name, hosts[0], { input, prefetched }))
  expect(result).toBe(resultOf(await invoke(name, hosts[1], { input })))
  expect(hosts[0].seen).toEqual(hosts[1].seen)
  return JSON.parse(result)
}

describe('a prefetched document', () => {
  test('a prefetched document is read without a reply, but the outcome waits for it', async () => {
    const { host, received, letGo } = heldHost(answers)
    let hasEnded = false
    const outcome = invoke('reads', host, { input: { ids: [second.id] }, prefetched: given })
    void outcome.then(() => {
      hasEnded = true
    })
    await received(1)
    expect(host.seen).toEqual([['get', second.id]])
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(hasEnded).toBe(false)
    letGo()
    expect(resultOf(await outcome)).toContain(second.id)
  })

  test.each([
    ['all', [first, second, third]],
    ['some in another order', [third, first]],
    ['none', []],
    ['with others between', [third, other, first, second, other]],
    ['twice', [second, first, second, second]],
    ['one that does not exist', [documentOf(7), first]],
  ])('reads the same as a requested one: %s', async (_, read) => {
    const ids = read.map(({ id }) => id)
    const found = await bothWays('reads', { ids })
    const texts = found.map((document: { text: string } | null) => document?.text ?? null)
    expect(texts).toEqual(read.map(({ id }) => (ALL.has(id) ? String(Number(id.slice(6))) : null)))
  })

  test('a result refers to prefetched documents before requested ones, by index', async () => {
    const input = { ids: [third.id, other.id, first.id] }
    const outcome = await invoke('reads', recordingHost(answers), { input, prefetched: given })
    expect(outcome).toMatchObject({ result: [{ $r: 2 }, { $r: 3 }, { $r: 0 }] })
  })

  test('a call that does not await the read is misspeculated, or throws', async () => {
    const input = { id: first.id }
    const speculative = await invoke('dangles', recordingHost(answers), {
      input,
      prefetched: given,
    })
    expect(speculative).toEqual({ kind: 'misspeculated', cause: 'failed' })
    const synchronous = await invoke('dangles', recordingHost(answers), { input })
    expect(synchronous).toMatchObject({ kind: 'threw' })
  })

  test('a prefetched document is not read before one that was requested earlier', async () => {
    const ids = [other.id, first.id, documentOf(7).id, second.id]
    expect(await bothWays('races', { ids })).toEqual(ids)
  })

  test('a document may be prefetched twice', async () => {
    const ids = [second.id, second.id, first.id]
    await bothWays('reads', { ids }, [first, second, second, first])
  })

  test('a prefetched document is another copy when it is read again', async () => {
    const [spoiled, whole, isSame] = await bothWays('spoils', { id: first.id })
    expect(spoiled).toMatchObject({ text: 'spoiled', tags: ['spoiled'] })
    expect(whole).toMatchObject({ text: '1', tags: [] })
    expect(isSame).toBe(false)
  })

  test.each(['patch', 'replace', 'delete', 'insert', 'runMutation'])(
    'a prefetched document is requested again after %s',
    async (how) => {
      const newer = documentOf(1, '{"tags":[],"text":"newer"}')
      const host = recordingHost((operation) => {
        if (operation[0] !== 'get') return 'null'
        return { documents: [host.seen.length > 1 ? newer : first], page: null }
      })
      const input = { id: first.id, how }
      const options = { kind: 'mutation', input, prefetched: [first] } as const
      const outcome = await invoke('rereads', host, options)
      const [before, after] = JSON.parse(resultOf(outcome))
      expect([before.text, after.text]).toEqual(['1', 'newer'])
      const write = how === 'runMutation' ? 'run' : how
      expect(host.seen.map(([type]) => type)).toEqual(['get', write, 'get'])
    },
  )

  test('a prefetched document is reported as read before the next awaited operation', async () => {
    const host = recordingHost(answers)
    await invoke('usage', host, { input: { id: first.id }, prefetched: given })
    expect(host.seen).toEqual([['get', first.id], ['usage']])
  })

  test('the runner caches a prefetched document, and each call gets its own copy', async () => {
    const spoil = () =>
      invoke('spoils', recordingHost(answers), { input: { id: third.id }, prefetched: given })
    const results = [resultOf(await spoil()), resultOf(await spoil()), resultOf(await spoil())]
    for (const result of results)
      expect(JSON.parse(result)[1]).toMatchObject({ tags: [], text: '3' })
  })
})
