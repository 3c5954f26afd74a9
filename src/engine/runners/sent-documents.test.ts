/**
 * Goal: the server and a runner number the documents that cross the pipe alike, regardless of what
 * happens to the calls, and hold a bounded share of them. Method: both sides without a pipe between
 * them, and calls that begin, are answered, end and are cancelled at random; then a real runner.
 */
import { afterAll, expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { poolBench } from '../../../testing/runners.ts'
import { SEED } from '../../../testing/seeds.ts'
import type { StoredDocument } from '../../documents/store.ts'
import { decode } from '../../runner/realm/decoding.ts'
import {
  type DeliveredDocuments,
  nameOfCopy,
  ReceivedDocuments,
  type SentItem,
} from '../../runner/realm/documents.ts'
import { documentText } from '../calls/document-text.ts'
import type { RunnerHost } from '../calls/outcomes.ts'
import { SentDocuments } from './sent-documents.ts'

function documentOf(number: number, sequence = 1, text = `{"n":${number}}`): StoredDocument {
  const id = `notes_${String(number).padStart(26, '0')}`
  return { id, createdAtMicros: 5n, sequence, text }
}

const parsed = (document: StoredDocument): unknown => decode(JSON.parse(documentText(document)))

/** A realm's side. */
function realm() {
  const documents = new ReceivedDocuments()
  return {
    documents,
    receive: (items: string, handed: DeliveredDocuments | null): unknown[] =>
      documents.receive(JSON.parse(`[${items}]`) as SentItem[], handed, () => ({})),
  }
}

/** Encodes a document as an item that the runner keeps. */
const kept = (document: StoredDocument): string => `[${documentText(document)}]`

test('what is sent a second time is kept, and named by its number in the order of keeping', () => {
  const sent = new SentDocuments()
  const [a, b] = [documentOf(1), documentOf(2)]
  expect(sent.items([a, b, a])).toBe(`${documentText(a)},${documentText(b)},${kept(a)}`)
  expect(sent.items([b, a])).toBe(`${kept(b)},1`)
  expect(sent.items([b, a])).toBe('2,1')
  expect(sent.items([])).toBe('')
})

test('another version of a document is another document', () => {
  const sent = new SentDocuments()
  const [older, newer] = [documentOf(1), documentOf(1, 2, '{"n":"newer"}')]
  sent.items([older, older])
  expect(sent.items([newer, older])).toBe(`${documentText(newer)},1`)
  expect(sent.items([newer])).toBe(kept(newer))
  expect(sent.items([newer, older])).toBe('2,1')
})

test('the oldest are forgotten beyond the bound, and get new numbers when they come again', () => {
  const sent = new SentDocuments(800)
  const all = [1, 2, 3, 4].map((number) => documentOf(number))
  sent.items([...all, ...all])
  expect(sent.trim()).toBe(3)
  expect(sent.trim()).toBeNull()
  expect(sent.items([all[3]!, all[2]!, all[0]!])).toBe(`4,3,${kept(all[0]!)}`)
  expect(sent.items([all[0]!])).toBe('5')
  expect(sent.trim()).toBe(4)
})

test('what is sent once leaves nothing, however much it is', () => {
  const sent = new SentDocuments(800)
  const again = documentOf(1)
  sent.items([again, again])
  for (let number = 2; number < 10_000; number++) sent.items([documentOf(number)])
  expect(sent.trim()).toBeNull()
  expect(sent.items([again])).toBe('1')
})

test('documents are sent and numbered again after all were evicted', () => {
  const sent = new SentDocuments(1_000)
  const [document, other] = [documentOf(1), documentOf(2)]
  sent.items([document, document, other, other])
  expect(sent.clear()).toBe(3)
  expect(sent.clear()).toBeNull()
  expect(sent.items([document, document])).toMatch(/^\[.+\],3$/)
})

test('many empty documents are as bounded as a few large ones', () => {
  const held = (text: string): number => {
    const sent = new SentDocuments(4 * 1024 * 1024)
    let first = 1
    let count = 0
    while (first === 1) {
      const document = documentOf(++count, 1, text)
      sent.items([document, document])
      first = sent.trim() ?? 1
    }
    return count
  }
  expect(held('{}')).toBeLessThan(12_000)
  expect(held(`{"a":"${'x'.repeat(1_000_000)}"}`)).toBe(5)
})

const step = fc.oneof(
  fc.record({ kind: fc.constant('begin' as const) }),
  fc.record({ kind: fc.constant('end' as const), call: fc.nat() }),
  fc.record({ kind: fc.constant('cancel' as const), call: fc.nat() }),
  {
    arbitrary: fc.record({ kind: fc.constant('write' as const), document: fc.nat({ max: 9 }) }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant('reply' as const),
      call: fc.nat(),
      documents: fc.array(fc.nat({ max: 9 }), { maxLength: 8 }),
      spoils: fc.boolean(),
    }),
    weight: 6,
  },
)

interface OpenCall {
  readonly handed: DeliveredDocuments
  /** The documents that it was handed, as the server counts. */
  readonly given: StoredDocument[]
  /** True if the realm has ended it, which the server does not know yet. */
  isOver: boolean
}

/** Spoils a copy in every place that holds another object. */
function spoil(copy: Record<string, unknown>): void {
  const { tags } = copy as { tags?: unknown[] }
  if (tags !== undefined) (tags[0] as { x: unknown }).x = 'spoiled'
  copy.n = 'spoiled'
  delete copy._id
}

test(`both sides number alike in any order of calls and evictions (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  let evictions = 0
  const property = fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => {
    const sent = new SentDocuments(900)
    const { documents, receive } = realm()
    const versions = Array.from({ length: 10 }, (_, number) => documentOf(number))
    const calls: OpenCall[] = []
    const pick = (at: number): OpenCall | undefined => calls[at % Math.max(1, calls.length)]
    let sequence = 1
    for (const one of steps) {
      if (one.kind === 'begin') {
        calls.push({ handed: { count: 0, copies: new Map() }, given: [], isOver: false })
      } else if (one.kind === 'write') {
        sequence += 1
        const text = `{"n":${sequence},"tags":[{"x":{"$i":"${sequence}"}}]}`
        versions[one.document] = documentOf(one.document, sequence, text)
      } else if (one.kind === 'end') {
        const call = pick(one.call)
        if (call !== undefined) call.isOver = true
      } else if (one.kind === 'cancel') {
        // The server sends nothing more for a call that it ended.
        if (calls.length > 0) calls.splice(one.call % calls.length, 1)
      } else {
        const call = pick(one.call)
        if (call === undefined) continue
        const given = one.documents.map((number) => versions[number]!)
        call.given.push(...given)
        const copies = receive(sent.items(given), call.isOver ? null : call.handed)
        const first = sent.trim()
        if (first !== null) {
          documents.forget(first)
          evictions += 1
        }
        if (call.isOver) continue
        expect(copies).toEqual(given.map(parsed))
        if (one.spoils) for (const copy of copies) spoil(copy as Record<string, unknown>)
      }
    }
    for (const { handed, given, isOver } of calls) {
      if (isOver) continue
      expect(handed.count).toBe(given.length)
      for (const [copy, { index }] of handed.copies) {
        const name = nameOfCopy(handed, copy)
        const isWhole = JSON.stringify(copy, text) === JSON.stringify(parsed(given[index]!), text)
        expect(name).toBe(isWhole ? `{"$r":${index}}` : null)
      }
    }
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(1_000) })
  expect(evictions).toBeGreaterThan(inputs(500))
})

const text = (_: string, value: unknown): unknown =>
  typeof value === 'bigint' ? `${value}n` : value

const bench = poolBench()
const code = bench.release(
  `
  texts: query(async (ctx) => {
    const seen = []
    for (let round = 0; round < 4; round++) {
      const all = await ctx.db.table('t').scan().take(5)
      seen.push(all.map(({ _id, _revision, text }) => _id + _revision + text[0] + text.length))
      for (const it of all) { it.text = 'spoiled'; delete it._id }
    }
    return seen
  }),`,
  `tables({ t: { fields: { text: { type: 'string' } }, indexes: [] } })`,
)
afterAll(() => bench.pool.close())

test('a runner holds what the server counts on, over evictions and calls that leave', {
  tags: ['slow'],
}, async () => {
  const letters = 'abcdefghijklmnop'
  const all = Array.from({ length: 16 }, (_, number) =>
    documentOf(number, 1, `{"text":"${letters[number]!.repeat(300_000)}"}`),
  )
  let turn = 0
  const shown = ({ id, sequence, text }: StoredDocument): string =>
    `${id}${sequence}${text[9]}${text.length - 11}`
  const one = async (index: number): Promise<string> => {
    const expected: string[][] = []
    const leaves = index % 4 === 0
    const signal = { aborted: false }
    const host: RunnerHost = {
      operation: async () => {
        const documents = Array.from({ length: 5 }, () => all[(turn++ * 7) % 16]!)
        expected.push(documents.map(shown))
        for (let i = index % 3; i > 0; i--) await new Promise((resolve) => setImmediate(resolve))
        // Its caller leaves while the documents of the second read are on their way.
        if (leaves && expected.length === 2) signal.aborted = true
        if (leaves && expected.length > 2) await new Promise(() => undefined)
        return { documents, page: { cursor: null, done: true } }
      },
    }
    const call = { ...bench.call('texts', { millis: 100_000 }), signal }
    const outcome = await bench.pool.invoke(code, call, host)
    if (outcome.kind === 'returned') expect(outcome.result).toEqual(expected)
    return outcome.kind
  }
  await bench.pool.warm(code)
  const kinds = await Promise.all(Array.from({ length: 16 }, (_, index) => one(index)))
  expect(kinds).toEqual(kinds.map((_, index) => (index % 4 === 0 ? 'cancelled' : 'returned')))
})
