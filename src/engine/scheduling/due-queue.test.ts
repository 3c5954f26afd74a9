import { expect, test } from 'vitest'
import {
  SCHEDULED_ACTIONS_MAX,
  SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX,
  SCHEDULED_MUTATION_RUNS_MAX,
  SCHEDULED_MUTATIONS_MAX,
} from '../limits.ts'
import type { ScheduledWork } from '../scheduled-work/scheduled-documents.ts'
import { DueQueue } from './due-queue.ts'

let count = 0
function workOf(name: string, kind: ScheduledWork['kind'] = 'mutation'): ScheduledWork {
  return {
    scheduledId: `sch_${count++}`,
    createdAtMicros: 0n,
    function: name,
    kind,
    releaseId: 'rel',
    argumentsText: '{}',
    source: 'function',
    cron: null,
    dueAtMicros: 0n,
    state: 'pending',
    attempts: 0,
    lastErrorCode: null,
    finishedAtMicros: null,
    lastErrorMessage: null,
    rerunBy: null,
  }
}

test('one Function does not take every run, and others start behind it', () => {
  const queue = new DueQueue(() => false)
  for (let i = 0; i < 100; i++) queue.add(workOf('busy'))
  const other = workOf('other')
  queue.add(other)
  const started = queue.take()
  expect(started).toHaveLength(SCHEDULED_MUTATION_RUNS_MAX + 1)
  expect(started.at(-1)).toBe(other)
  expect(queue.take()).toEqual([])
})

test('a full queue takes work of other Functions only', () => {
  const queue = new DueQueue(() => false)
  let count = 0
  while (queue.add(workOf('busy'))) count += 1
  expect(count).toBe(2_048)
  expect(queue.isHalfEmpty).toBe(false)
  const others = Array.from({ length: 100 }, () => workOf('other'))
  expect(others.filter((work) => queue.add(work))).toHaveLength(24)
  expect(queue.take().filter((work) => work.function === 'other')).toHaveLength(
    SCHEDULED_MUTATIONS_MAX - SCHEDULED_MUTATION_RUNS_MAX,
  )
})

test('a queue is full of long arguments, and takes more once they have started', () => {
  const queue = new DueQueue(() => false)
  const long = (name: string) => ({ ...workOf(name), argumentsText: ' '.repeat(2 ** 20) })
  let count = 0
  while (queue.add(long('busy'))) count += 1
  expect(count).toBe(32)
  queue.take()
  expect(queue.isHalfEmpty).toBe(true)
  expect(queue.add(workOf('busy'))).toBe(true)
})

test('all Mutations together, and all Actions together, have a bound', () => {
  const queue = new DueQueue(() => false)
  for (let i = 0; i < 100; i++) {
    queue.add(workOf(`mutation ${i}`))
    queue.add(workOf(`action ${i}`, 'action'))
  }
  const kinds = queue.take().map((work) => work.kind)
  expect(kinds.filter((kind) => kind === 'mutation')).toHaveLength(SCHEDULED_MUTATIONS_MAX)
  expect(kinds.filter((kind) => kind === 'action')).toHaveLength(SCHEDULED_ACTIONS_MAX)
  expect(queue.hasCapacity).toBe(false)
})

test('the end of a run lets the next one start, in the order of the queue', () => {
  const queue = new DueQueue(() => false)
  const works = Array.from({ length: SCHEDULED_MUTATION_RUNS_MAX + 2 }, () => workOf('f'))
  for (const work of works) queue.add(work)
  const [first] = queue.take()
  queue.end(first!)
  expect(queue.take()).toEqual([works[SCHEDULED_MUTATION_RUNS_MAX]])
})

test('work of several Functions starts in the order of the queue', () => {
  const queue = new DueQueue(() => false)
  const works = Array.from({ length: 12 }, (_, i) => {
    return workOf(`f${(i * 5) % 3}`, i % 4 === 0 ? 'action' : 'mutation')
  })
  for (const work of works) queue.add(work)
  expect(queue.take()).toEqual(works)
  for (const work of works) queue.end(work)
  expect(queue.running).toBe(0)
  expect(queue.waiting).toBe(0)
})

test('work is known until it is forgotten, so that a read does not add it twice', () => {
  const queue = new DueQueue(() => false)
  const work = workOf('f')
  queue.add(work)
  queue.take()
  queue.end(work)
  expect(queue.has(work.scheduledId)).toBe(true)
  queue.forget(work.scheduledId)
  expect(queue.has(work.scheduledId)).toBe(false)
})

test('fewer Mutations start while applications call, and more once they do not', () => {
  let hasCalls = true
  const queue = new DueQueue(() => hasCalls)
  const works = Array.from({ length: 100 }, () => workOf('f'))
  for (const work of works) queue.add(work)
  const beside = SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX
  expect(queue.take()).toEqual(works.slice(0, beside))
  hasCalls = false
  expect(queue.take()).toEqual(works.slice(beside, SCHEDULED_MUTATION_RUNS_MAX))
  hasCalls = true
  for (const work of works.slice(0, beside)) queue.end(work)
  expect(queue.take()).toEqual([])
})
