/** Tests that the checker finds each defect in a history that has it, and none in a valid one. */
import { expect, test } from 'vitest'
import { check } from './checker.ts'
import type { Change, LiveHistory, Received, ReceivedState, Watch } from './history.ts'

const put = (key: number, value: number): Change => ({
  kind: 'put',
  key,
  room: 1,
  rank: key,
  value,
})
const COMMITS = [
  { sequence: 3, changes: [put(1, 10)] },
  { sequence: 5, changes: [put(2, 20)] },
  { sequence: 8, changes: [{ ...put(1, 5), kind: 'add' as const }] },
]

/** The first commit alone is seen after these. */
const CANCELLED = [
  ...COMMITS.slice(0, 2),
  { sequence: 6, changes: [{ ...put(2, 20), kind: 'remove' as const }] },
]

function state(
  revision: number,
  snapshot: number,
  more: Partial<ReceivedState> = {},
): ReceivedState {
  const answer = snapshot < 5 ? [1, 10] : snapshot < 8 ? [1, 10, 2, 20] : [1, 15, 2, 20]
  const plain = { type: 'state', release: 1, padding: 0, isRepeated: false } as const
  return { ...plain, revision, snapshot, answer, ...more }
}

const current = (sequence: number): Received => ({ type: 'current', sequence })
const resync = (reason: string): Received => ({ type: 'resync', reason })
const VALID = [state(1, 3), current(4), state(2, 6), state(3, 8), current(9)]

function history(received: readonly Received[], more: Partial<Watch> = {}): LiveHistory {
  const query = { name: 'walk', room: 1, limit: 2 } as const
  const watch = { subscriber: 7, query, knownBefore: 3, received, isFinal: true, ...more }
  return { commits: COMMITS, watches: [watch], finalRelease: 1 }
}

test.each<[string, LiveHistory]>([
  ['states in order, up to the last commit', history(VALID)],
  [
    'a commit that is not shown, since the next one came',
    history([state(1, 3), ...VALID.slice(3)].map((each, i) => (i === 1 ? state(2, 8) : each))),
  ],
  [
    'an equal state after a resync',
    history([
      ...VALID.slice(0, 4),
      resync('slow_consumer'),
      state(4, 8, { isRepeated: true }),
      current(8),
    ]),
  ],
  [
    'a subscription that ended behind, since its connection was lost',
    history([state(1, 3)], { isFinal: false }),
  ],
  [
    'a pong between changes that cancel each other out',
    { ...history([state(1, 3), current(5), current(6)]), commits: CANCELLED },
  ],
  [
    'a pong about an older sequence than that of the state',
    history([...VALID.slice(0, 4), current(4), current(9)]),
  ],
])('a history has no finding: %s', (_, valid) => {
  expect(check(valid)).toEqual([])
})

test.each<[string, LiveHistory, RegExp]>([
  [
    'a wrong value',
    history([state(1, 3, { answer: [1, 11] }), ...VALID.slice(1)]),
    /shows \[1,11\].*make \[1,10\]/,
  ],
  [
    'a state with the padding of another Query',
    history([state(1, 3, { padding: 1 }), ...VALID.slice(1)]),
    /1 bytes/,
  ],
  [
    'a state of an older snapshot',
    history([state(1, 8), state(2, 6), current(9)]),
    /a state of 6 follows 8/,
  ],
  [
    'a revision that is missing',
    history([state(1, 3), state(3, 8), current(9)]),
    /revision 3 follows 1/,
  ],
  [
    'a revision without a change',
    history([...VALID, state(4, 9, { isRepeated: true })]),
    /revision 4 changes nothing/,
  ],
  [
    'a first state that is older than a commit that was known',
    history(VALID, { knownBefore: 4 }),
    /the first state is of 3, before 4/,
  ],
  [
    'a pong that comes before the state',
    history([state(1, 3), current(5), state(2, 8), current(9)]),
    /pong calls current at 5/,
  ],
  [
    'a pong that comes before the state, where a later change is cancelled',
    {
      ...history([state(1, 3), current(5), state(2, 5), state(3, 6, { answer: [1, 10] })]),
      commits: CANCELLED,
    },
    /revision 1 of 3.*pong calls current at 5/,
  ],
  ['a subscription that ends behind', history(VALID.slice(0, 3)), /it ends at 4, behind 8/],
  ['a lost change at the end', history([state(1, 6), current(9)]), /revision 1 of 6.*current at 9/],
  [
    'a pong before the first state',
    history([current(4), ...VALID]),
    /current at 4 without a state/,
  ],
  ['a subscription without a state', history([]), /it has no state/],
  [
    'the Release before the last promotion',
    { ...history(VALID), finalRelease: 2 },
    /it ends with Release 1/,
  ],
  [
    'another Release without a message',
    history([state(1, 3), state(2, 8, { release: 2 }), current(9)]),
    /another Release without/,
  ],
  [
    'two commits of one sequence',
    { ...history(VALID), commits: [...COMMITS, COMMITS[2]!] },
    /two Mutations committed as 8/,
  ],
])('a history with a defect has a finding: %s', (_, broken, finding) => {
  expect(check(broken).join('\n')).toMatch(finding)
})
