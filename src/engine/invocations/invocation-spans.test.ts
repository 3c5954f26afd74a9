import { expect, test } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import type { Span, SpanEnd } from '../../telemetry/traces/spans.ts'
import type { CommitOutcome } from '../commits/committer.ts'
import { tracedCommit } from './invocation-spans.ts'

const unavailable = new Fault('UNAVAILABLE')
const UNAVAILABLE = { attributes: { 'svc.error.code': 'UNAVAILABLE' }, error: 'UNAVAILABLE' }
const assigned = (durable: Promise<void>): CommitOutcome => {
  return { kind: 'assigned', sequence: 7, durable, outcomeKnown: Promise.resolve() }
}

test.each<[string, () => CommitOutcome | Promise<CommitOutcome>, SpanEnd]>([
  [
    'durable',
    () => assigned(Promise.resolve()),
    { attributes: { 'svc.commit.outcome': 'durable', 'svc.commit.sequence': 7 } },
  ],
  [
    'a conflict',
    () => Promise.resolve({ kind: 'conflict', keys: [] }),
    { attributes: { 'svc.commit.outcome': 'conflict' } },
  ],
  ['not stored', () => assigned(Promise.reject(unavailable)), UNAVAILABLE],
  [
    'rejected at once',
    () => {
      throw unavailable
    },
    UNAVAILABLE,
  ],
])('the span of a commit that is %s has an end', async (_, commit, expected) => {
  const ends: (SpanEnd | undefined)[] = []
  const span = { end: (end) => ends.push(end) } as Pick<Span, 'end'> as Span
  try {
    tracedCommit(span, commit)
  } catch (error) {
    expect(error).toBe(unavailable)
  }
  await expect.poll(() => ends).toEqual([expected])
})
