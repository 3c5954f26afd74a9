/**
 * Tests that the checker finds each anomaly in a history that has it, and none in a valid one.
 *
 * @module-tag slow
 */

import { describe, expect, test } from 'vitest'
import { fc } from '../../testing/properties.ts'
import type { AnomalyKind } from './anomalies.ts'
import { check, summarize } from './checker.ts'
import {
  type Answer,
  type History,
  isWrite,
  type Operation,
  registerKey,
  type Transaction,
} from './history.ts'
import { Model } from './model.ts'
import { compareWithModel, compareWithTime } from './oracle.ts'
import { planned } from './workload.ts'

type Step = readonly [Operation, Answer]

const append = (key: number, element: number): Step => [{ kind: 'append', key, element }, null]
const list = (key: number, ...elements: number[]): Step => [{ kind: 'list', key }, elements]
const write = (key: number, value: number, before?: number | null): Step => [
  { kind: 'write', key, value, how: 'patch' },
  before === undefined ? null : before === null ? [] : [before],
]
const read = (key: number, value?: number): Step => [
  { kind: 'read', key },
  value === undefined ? [] : [value],
]
const range = (from: number, to: number, ...rows: number[]): Step => [
  { kind: 'range', space: 0, from, to, order: 'asc', limit: 100 },
  rows,
]

interface Given {
  readonly outcome?: Transaction['outcome']
  /** Times of the request and the reply; by default all transactions are concurrent. */
  readonly time?: readonly [number, number]
}

function transaction(number: number, steps: readonly Step[], given: Given = {}): Transaction {
  const { outcome = 'committed', time = [0, 1_000] } = given
  return {
    number,
    client: number,
    kind: 'mutation',
    operations: steps.map(([operation]) => operation),
    answers: outcome === 'committed' ? steps.map(([, answer]) => answer) : null,
    outcome,
    invoked: time[0],
    completed: outcome === 'unknown' ? Number.POSITIVE_INFINITY : time[1],
    commitSequence: null,
    snapshotSequence: null,
    attempts: 1,
  }
}

/** Creates a history. Each entry is one transaction: its steps, optionally with more facts. */
function historyOf(...entries: (readonly Step[] | readonly [readonly Step[], Given])[]): History {
  return entries.map((entry, i) => {
    const first = entry[0]
    const isPlain = first === undefined || 'kind' in (first as Step)[0]
    const [steps, given] = isPlain ? [entry as readonly Step[], {}] : (entry as [Step[], Given])
    return transaction(i + 1, steps, given)
  })
}

/** Anomalies that also appear as a cycle. */
const ALSO_CYCLES: readonly AnomalyKind[] = [
  'G1b',
  'incompatible orders',
  'duplicate append',
  'lost append',
]

describe('planted anomalies', () => {
  const planted: readonly (readonly [string, AnomalyKind, History])[] = [
    [
      'two lists that two transactions appended to in opposite orders',
      'G0',
      historyOf(
        [append(1, 10), append(2, 11)],
        [append(1, 20), append(2, 21)],
        [list(1, 10, 20), list(2, 21, 11)],
      ),
    ],
    [
      'an element of an aborted transaction',
      'G1a',
      historyOf([[append(1, 10)], { outcome: 'aborted' }], [list(1, 10)]),
    ],
    [
      'a value of an aborted transaction',
      'G1a',
      historyOf([[write(1, 10)], { outcome: 'aborted' }], [read(1, 10)]),
    ],
    [
      'a value that was replaced, of an aborted transaction',
      'G1a',
      historyOf([[write(1, 10)], { outcome: 'aborted' }], [write(1, 20, 10)]),
    ],
    [
      'a list without the last element that the same transaction appended',
      'G1b',
      historyOf([append(1, 10), append(1, 11)], [list(1, 10)], [list(1, 10, 11)]),
    ],
    [
      'a value that its own writer replaced',
      'G1b',
      historyOf([write(1, 10, null), write(1, 11, 10)], [read(1, 10)]),
    ],
    [
      'two transactions that read each other',
      'G1c',
      historyOf([append(1, 10), list(2, 20)], [append(2, 20), list(1, 10)]),
    ],
    [
      'a read of one list before and of another after one transaction',
      'G-single',
      historyOf([append(1, 10), append(2, 11)], [list(1, 10), list(2)], [list(1, 10), list(2, 11)]),
    ],
    [
      'a read of one register before and of another after one transaction',
      'G-single',
      historyOf([write(1, 10, null), write(2, 11, null)], [read(1, 10), read(2)]),
    ],
    [
      'a register that two transactions replaced the same value of',
      'G-single',
      historyOf([write(1, 10, null)], [write(1, 20, 10)], [write(1, 30, 10)]),
    ],
    [
      'a range without a row whose writer was read elsewhere',
      'G-single',
      historyOf([write(1, 10, null), append(2, 11)], [list(2, 11), range(0, 100)]),
    ],
    [
      'a range with a row that had left it before',
      'G-single',
      historyOf(
        [write(1, 10, null)],
        [write(1, 500, 10), append(2, 21)],
        [list(2, 21), range(0, 100, 1, 10)],
      ),
    ],
    [
      'two transactions that write what the other read as absent',
      'G2-item',
      historyOf([read(1), read(2), write(1, 10, null)], [read(1), read(2), write(2, 20, null)]),
    ],
    [
      'two transactions that add rows to the range that the other read',
      'G2',
      historyOf([range(0, 100), write(1, 10, null)], [range(0, 100), write(2, 20, null)]),
    ],
    [
      'a read that does not contain an acknowledged append',
      'real time',
      historyOf(
        [[append(1, 10)], { time: [1, 2] }],
        [[list(1)], { time: [3, 4] }],
        [[list(1, 10)], { time: [5, 6] }],
      ),
    ],
    [
      'a read that does not contain an acknowledged append, with a concurrent one between',
      'real time',
      historyOf(
        [[append(1, 10)], { time: [1, 3] }],
        [[append(2, 20)], { time: [2, 4] }],
        [[list(1)], { time: [5, 6] }],
        [[list(1, 10)], { time: [7, 8] }],
      ),
    ],
    [
      'a register that goes back in time',
      'real time',
      historyOf(
        [[write(1, 10, null)], { time: [1, 2] }],
        [[write(1, 20, 10)], { time: [3, 4] }],
        [[read(1, 10)], { time: [5, 6] }],
      ),
    ],
    [
      'an append that its own transaction does not see',
      'internal',
      historyOf([append(1, 10), list(1)]),
    ],
    [
      'a write that its own transaction does not see',
      'internal',
      historyOf([write(1, 10, null), read(1)]),
    ],
    [
      'a row that its own transaction does not see',
      'internal',
      historyOf([write(1, 10, null), range(0, 100)]),
    ],
    [
      'a list in two orders',
      'incompatible orders',
      historyOf([append(1, 10)], [append(1, 20)], [list(1, 10, 20)], [list(1, 20)]),
    ],
    [
      'an element twice',
      'duplicate append',
      historyOf([append(1, 10)], [append(1, 20)], [list(1, 10, 20, 10)]),
    ],
    [
      'an append that no later read shows',
      'lost append',
      historyOf([[append(1, 10)], { time: [1, 2] }], [[list(1)], { time: [3, 4] }]),
    ],
    ['an element that no transaction wrote', 'unwritten', historyOf([list(1, 99)])],
    ['a value that no transaction wrote', 'unwritten', historyOf([read(1, 99)])],
  ]

  test.each(planted)('the checker finds %s: %s', (_, kind, history) => {
    const kinds = new Set(check(history).map((anomaly) => anomaly.kind))
    if (ALSO_CYCLES.includes(kind)) expect(kinds).toContain(kind)
    else expect([...kinds]).toEqual([kind])
  })

  test('an anomaly is shown with the shortest cycle, its objects and the answers', () => {
    const history = historyOf(
      [append(1, 10), append(2, 11)],
      [list(1, 10), append(3, 20)],
      [list(3, 20), list(2)],
      [list(1, 10), list(2, 11)],
      [list(1, 10), list(2)],
    )
    expect(check(history).map(({ text }) => text)).toEqual([
      [
        'G-single: T5 -(rw on list 2)-> T1 -(wr on list 1)-> T5',
        '  T5 (client 5, mutation, committed): list 1 = [10]; list 2 = []',
        '  T1 (client 1, mutation, committed): append 10 to list 1 = ?; append 11 to list 2 = ?',
      ].join('\n'),
    ])
  })
})

describe('valid histories', () => {
  test('appends of unknown outcome are accepted, whether a transaction read them or not', () => {
    const unknown = { outcome: 'unknown' } as const
    const history = historyOf(
      [[append(1, 10)], unknown],
      [[append(1, 20)], unknown],
      [list(1, 10), append(1, 30)],
      [list(1, 10, 30)],
    )
    expect(check(history)).toEqual([])
  })

  test('a register that leaves a range and returns to it is accepted', () => {
    const history = historyOf(
      [write(1, 10, null)],
      [write(1, 500, 10)],
      [range(0, 100)],
      [write(1, 20, 500)],
      [range(0, 100, 1, 20)],
    )
    expect(check(history)).toEqual([])
  })

  test('a limit that ends a range before a row is accepted', () => {
    const limited: Step = [
      { kind: 'range', space: 0, from: 0, to: 100, order: 'desc', limit: 1 },
      [2, 20],
    ]
    const history = historyOf(
      [write(1, 10, null), append(1, 11)],
      [write(2, 20, null)],
      [list(1, 11), limited],
    )
    expect(check(history)).toEqual([])
  })
})

/** Creates a serial run of the workload, as clients with overlapping requests would see it. */
function serialHistory(seed: number, count: number, overlap: number): Transaction[] {
  const model = new Model()
  let sequence = 0
  return Array.from({ length: count }, (_, number) => {
    const { kind, operations, aborts } = planned(seed, number)
    const writes = kind === 'mutation' && operations.some(isWrite)
    const answers = aborts ? null : model.perform(operations)
    const isCommit = writes && !aborts
    if (isCommit) sequence += 1
    return {
      number,
      client: number % 32,
      kind,
      operations,
      answers,
      outcome: aborts ? 'aborted' : 'committed',
      // The transaction takes effect at time 2 * number, between its request and its reply.
      invoked: 2 * number - (overlap === 0 ? 0.5 : (number * 7) % overlap),
      completed: 2 * number + (overlap === 0 ? 0.5 : (number * 11) % overlap) + 0.25,
      commitSequence: isCommit ? sequence : null,
      snapshotSequence: kind === 'query' ? sequence : null,
      attempts: 1,
    }
  })
}

describe('random histories', () => {
  const seeds = { seed: fc.nat(2 ** 31), overlap: fc.constantFrom(0, 5, 40) }

  test('serial histories are accepted', () => {
    fc.assert(
      fc.property(fc.record(seeds), ({ seed, overlap }) => {
        const history = serialHistory(seed, 300, overlap)
        expect(summarize(check(history))).toBe('no anomaly')
        expect(compareWithModel(history)).toEqual([])
        expect(compareWithTime(history)).toEqual([])
      }),
      { numRuns: 50 },
    )
  })

  test('serial histories with two swapped answers are rejected', () => {
    fc.assert(
      fc.property(fc.record({ ...seeds, pick: fc.nat() }), ({ seed, pick }) => {
        const history = serialHistory(seed, 300, 0)
        const swaps = swapsOf(history)
        fc.pre(swaps.length > 0)
        const [first, second] = swaps[pick % swaps.length]!
        const partly = withAnswer(history, first, second.answer)
        const swapped = withAnswer(partly, second, first.answer)
        expect(summarize(check(swapped))).not.toBe('no anomaly')
        expect(compareWithModel(swapped)).not.toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  test('serial histories with one stale answer are rejected', () => {
    fc.assert(
      fc.property(fc.record({ ...seeds, pick: fc.nat() }), ({ seed, pick }) => {
        const history = serialHistory(seed, 300, 0)
        const swaps = swapsOf(history)
        fc.pre(swaps.length > 0)
        const [before, after] = swaps[pick % swaps.length]!
        const stale = withAnswer(history, after, before.answer)
        expect(summarize(check(stale))).not.toBe('no anomaly')
        expect(compareWithModel(stale)).not.toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  // A comparison of every pair of transactions would take hours; this takes some seconds.
  test('a history of 100,000 transactions is checked in minutes', { timeout: 600_000 }, () => {
    expect(check(serialHistory(7, 100_000, 40))).toEqual([])
  })
})

interface Location {
  readonly transaction: number
  readonly operation: number
  readonly answer: Answer
}

/** Returns pairs of different answers to the same read, of committed transactions. */
function swapsOf(history: History): [Location, Location][] {
  const reads = new Map<string, Location>()
  const found: [Location, Location][] = []
  for (const [transaction, { operations, answers }] of history.entries()) {
    for (const [operation, each] of operations.entries()) {
      const answer = answers?.[operation]
      if (answer === undefined || (each.kind !== 'list' && each.kind !== 'read')) continue
      const location = { transaction, operation, answer }
      const name = `${each.kind} ${each.key}`
      const earlier = reads.get(name)
      if (earlier !== undefined && earlier.transaction !== transaction) {
        if (String(earlier.answer) !== String(answer)) found.push([earlier, location])
      }
      reads.set(name, location)
    }
  }
  return found
}

function withAnswer(history: History, at: Location, answer: Answer): History {
  return history.map((each, i) =>
    i === at.transaction ? { ...each, answers: each.answers!.with(at.operation, answer) } : each,
  )
}

test('registers of different spaces are distinguished', () => {
  const other = registerKey(1, 1)
  const history = historyOf([write(other, 10, null), append(2, 11)], [list(2, 11), range(0, 100)])
  expect(check(history)).toEqual([])
})
