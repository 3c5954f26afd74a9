import { describe, expect, test } from 'vitest'
import { encodeTagged } from '../../value/tagged.ts'
import { TypedId, type Value } from '../../value/values.ts'
import { PATCH_BYTES_MAX, PATCHED_CHARACTERS_MAX } from '../limits.ts'
import { longestIncreasing, movesTo } from './list-moves.ts'
import { listPatch } from './list-patches.ts'

const BODY = 'x'.repeat(300)
/** Returns an ID of the table `messages`. */
const idOf = (number: number) => `messages_${String(number).padStart(26, '0')}`

function entry(number: number, more: Readonly<Record<string, Value>> = {}): Value {
  return new Map<string, Value>([
    ['_id', new TypedId(idOf(number))],
    ['body', BODY],
    ...Object.entries(more),
  ])
}

const page = (items: readonly Value[], cursor: string | null = null): Value =>
  new Map<string, Value>([
    ['cursor', cursor],
    ['done', cursor === null],
    ['items', items],
  ])

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
const entries = (from: number, to: number) => numbers(from, to).map((number) => entry(number))

// biome-ignore lint/suspicious/noExplicitAny: tests look into patches of many shapes.
type Loose = any

function patch(before: Value, after: Value): Loose {
  const text = listPatch(encodeTagged(before), encodeTagged(after))
  return text === null ? null : JSON.parse(`{${text}}`)
}

const tagged = (value: Value) => JSON.parse(encodeTagged(value))

describe('the patch of a list', () => {
  test('names what was removed, changed, moved and inserted', () => {
    const changed = entry(3, { edited: true })
    const before = entries(0, 10)
    const after = [entry(20), entry(9), entry(0), entry(2), changed, ...entries(4, 9), entry(21)]
    expect(patch(before, after)).toEqual({
      path: [],
      remove: [idOf(1)],
      update: [{ id: idOf(3), value: tagged(changed) }],
      move: [{ id: idOf(9), to: 0 }],
      insert: [
        { at: 0, value: tagged(entry(20)) },
        { at: 10, value: tagged(entry(21)) },
      ],
    })
  })

  test('changes the items of a page, whose other fields are the same', () => {
    const found = patch(page(entries(0, 10), 'c'), page(entries(1, 10), 'c'))
    expect(found).toMatchObject({ path: ['items'], remove: [idOf(0)], insert: [] })
    expect(patch(page(entries(0, 10), 'c'), page(entries(1, 10), 'd'))).toBeNull()
    expect(patch(page(entries(0, 10)), page(entries(0, 10), 'c'))).toBeNull()
  })

  test('finds IDs that are strings, behind other fields, with characters that JSON escapes', () => {
    const named = (id: string, body = BODY): Value =>
      new Map<string, Value>([
        ['A "first" field\\', [new Map([['_id', 'inner']]), '}]"']],
        ['_id', id],
        ['body', body],
      ])
    const ids = ['a"b', '\\', 'ü😀', ']}', '']
    const before = ids.map((id) => named(id))
    const after = ids.map((id) => named(id, id === '\\' ? `${BODY}"` : BODY))
    expect(patch(before, after).update).toEqual([{ id: '\\', value: tagged(after[1]!) }])
  })

  test('moves as few entries as possible', () => {
    const before = entries(0, 100)
    const [first, ...others] = before
    expect(patch(before, [...others, first!]).move).toEqual([{ id: idOf(0), to: 99 }])
    const swapped = [before[99]!, ...before.slice(1, 99), before[0]!]
    expect(patch(before, swapped).move).toHaveLength(2)
  })
})

describe('no patch', () => {
  const list = entries(0, 10)
  const cases: Readonly<Record<string, readonly [Value, Value]>> = {
    'of a list with two entries of one ID': [[...list, entry(0)], list],
    'to a list with two entries of one ID': [list, [...list, entry(0)]],
    'to a list with an entry that is not an object': [list, [...list, 'x']],
    'to a list with an entry without an ID': [list, [...list, new Map([['body', 'x']])]],
    'to a list with an ID of another type': [list, [...list, new Map([['_id', 5n]])]],
    'between a list and a page': [list, page(list)],
    'between results that are no lists': ['a', 'b'],
    'between objects without items': [new Map([['a', list]]), new Map([['a', list.slice(1)]])],
    'between items that are no list': [new Map([['items', 'a']]), new Map([['items', 'b']])],
    'where half of the list is new': [list, [...entries(20, 25), ...list.slice(5)]],
    'where the list is new': [[], list],
  }
  test.each(Object.entries(cases))('exists %s', (_, [before, after]) => {
    expect(patch(before, after)).toBeNull()
  })

  test('exists that has more bytes than one message', () => {
    const many = entries(0, 1_000)
    const changed = (count: number) =>
      many.map((each, i) => (i < count ? entry(i, { edited: true }) : each))
    const each = encodeTagged(entry(0, { edited: true })).length
    expect(patch(many, changed(Math.floor(PATCH_BYTES_MAX / each) - 20))).not.toBeNull()
    expect(patch(many, changed(Math.ceil(PATCH_BYTES_MAX / each)))).toBeNull()
  })

  test('exists between results that are longer than the bound', () => {
    const each = encodeTagged(entry(0)).length
    const most = entries(0, Math.floor(PATCHED_CHARACTERS_MAX / (each + 1)) - 1)
    expect(patch(most, most.slice(1))).toMatchObject({ remove: [idOf(0)] })
    expect(patch([...most, ...entries(5_000, 5_010)], most)).toBeNull()
  })
})

test('moves bring every order of six entries into place, and are as few as possible', () => {
  let orders = 0
  for (const order of permutations(numbers(0, 6))) {
    const fixed = longestIncreasing(order)
    const moves = [...movesTo(order, fixed)]
    const list = numbers(0, 6)
    for (const { position, to } of moves) {
      list.splice(list.indexOf(position), 1)
      list.splice(to, 0, position)
    }
    expect(list).toEqual(order)
    expect(moves.length).toBe(6 - longestOf(order))
    orders += 1
  }
  expect(orders).toBe(720)
})

function* permutations(of: readonly number[]): Generator<readonly number[]> {
  if (of.length === 0) yield []
  for (const first of of) {
    for (const rest of permutations(of.filter((each) => each !== first))) yield [first, ...rest]
  }
}

/** Returns the length of a longest increasing subsequence, by trying all of them. */
function longestOf(order: readonly number[], above = -1): number {
  const [first, ...rest] = order
  if (first === undefined) return 0
  const without = longestOf(rest, above)
  return first > above ? Math.max(without, 1 + longestOf(rest, first)) : without
}
