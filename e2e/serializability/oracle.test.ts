/** Tests that the oracle finds answers that contradict the model, and sequences out of order. */
import { describe, expect, test } from 'vitest'
import type { Answer, Operation, Transaction } from './history.ts'
import { compareWithModel, compareWithTime } from './oracle.ts'

const append = (element: number): Operation => ({ kind: 'append', key: 1, element })
const LIST: Operation = { kind: 'list', key: 1 }

interface Given {
  readonly time: readonly [sent: number, answered: number]
  readonly commit?: number
  readonly snapshot?: number
}

function transaction(operation: Operation, answer: Answer, given: Given): Transaction {
  const { time, commit = null, snapshot = null } = given
  return {
    number: time[0],
    client: 1,
    kind: snapshot === null ? 'mutation' : 'query',
    operations: [operation],
    answers: [answer],
    outcome: 'committed',
    invoked: time[0],
    completed: time[1],
    commitSequence: commit,
    snapshotSequence: snapshot,
    attempts: 1,
  }
}

const first = transaction(append(10), [1], { time: [1, 2], commit: 5 })
const second = transaction(append(20), [2], { time: [3, 6], commit: 6 })

describe('the model', () => {
  test('the model orders transactions by their sequences, not by the history', () => {
    const query = transaction(LIST, [10], { time: [4, 5], snapshot: 5 })
    const newer = transaction(LIST, [10, 20], { time: [4, 5], snapshot: 6 })
    const empty = transaction(LIST, [], { time: [0, 1], snapshot: 4 })
    expect(compareWithModel([second, newer, query, empty, first])).toEqual([])
  })

  test.each([
    ['a Query of another state', transaction(LIST, [10], { time: [4, 5], snapshot: 6 })],
    ['a Mutation with another answer', transaction(append(30), [1], { time: [7, 8], commit: 7 })],
    [
      'a sequence that another Mutation has',
      transaction(append(30), [3], { time: [7, 8], commit: 6 }),
    ],
    ['a Mutation that wrote without a sequence', transaction(append(30), [3], { time: [7, 8] })],
  ])('the model contradicts %s', (_, wrong) => {
    expect(compareWithModel([first, second, wrong])).not.toEqual([])
  })

  test('a Mutation without writes has the answers of some time of its request', () => {
    const during = { time: [4, 5] } as const
    expect(compareWithModel([first, second, transaction(LIST, [10], during)])).toEqual([])
    expect(compareWithModel([first, second, transaction(LIST, [10, 20], during)])).toEqual([])
    expect(compareWithModel([first, second, transaction(LIST, [], during)])).toHaveLength(1)
    const before = transaction(LIST, [10, 20], { time: [2.1, 2.9] })
    expect(compareWithModel([first, second, before])).toHaveLength(1)
  })
})

describe('sequences in the replies before a request', () => {
  test('a Mutation commits after every sequence in an earlier reply', () => {
    const late = transaction(append(30), [1], { time: [3, 4], commit: 4 })
    expect(compareWithTime([first, late])).toHaveLength(1)
    const together = transaction(append(30), [1], { time: [1.5, 4], commit: 4 })
    expect(compareWithTime([first, together])).toEqual([])
  })

  test('a Query reads at least at every sequence in an earlier reply', () => {
    const query = (snapshot: number) => transaction(LIST, [], { time: [3, 4], snapshot })
    expect(compareWithTime([first, query(4)])).toHaveLength(1)
    expect(compareWithTime([first, query(5)])).toEqual([])
    const next = transaction(append(30), [1], { time: [5, 6], commit: 5 })
    expect(compareWithTime([query(5), next])).toHaveLength(1)
  })
})
