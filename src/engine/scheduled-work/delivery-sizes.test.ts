/** The sizes of deliveries, which bound the disk that strangers may fill. */
import { expect, test } from 'vitest'
import type { ValueObject } from '../../value/values.ts'
import {
  DeliverySizes,
  FINISHED_CHARACTERS_MAX,
  UNFINISHED_CHARACTERS_MAX,
} from './delivery-sizes.ts'

const fields = (state: string, mount: string | null, length = 10): ValueObject =>
  new Map([
    ['state', state],
    ['arguments', 'x'.repeat(length)],
    ...(mount === null ? [] : [['mount', mount] as const]),
  ])
const change = (before: string | null, after: string | null, mount: string | null = 'main') => ({
  scheduledId: 'sch_1',
  before: before === null ? null : fields(before, mount),
  after: after === null ? null : fields(after, mount),
})

function store(sizes: DeliverySizes, each: ReturnType<typeof change>): void {
  sizes.assign(each)
  sizes.commit(each)
}

test('the sizes follow the states of deliveries, and other work has none', () => {
  const sizes = new DeliverySizes()
  store(sizes, change(null, 'pending', null))
  expect(sizes.total).toBe(0)
  store(sizes, change(null, 'pending'))
  store(sizes, change('pending', 'running'))
  expect(sizes.of('main')).toEqual({ unfinished: 10, finished: 0 })
  store(sizes, change('running', 'failed'))
  expect(sizes.of('main')).toEqual({ unfinished: 0, finished: 10 })
  store(sizes, change('failed', 'pending'))
  expect(sizes.of('main')).toEqual({ unfinished: 10, finished: 0 })
  store(sizes, change('pending', 'succeeded'))
  store(sizes, change('succeeded', null))
  expect([sizes.of('main'), sizes.total]).toEqual([{ unfinished: 0, finished: 0 }, 0])
})

test('a commit that was rolled back leaves the sizes as they were', () => {
  const sizes = new DeliverySizes()
  sizes.assign(change(null, 'pending'))
  sizes.revert(change(null, 'pending'))
  expect(sizes.total).toBe(0)
})

test('what was stored before the start is added', () => {
  const sizes = new DeliverySizes()
  sizes.add(fields('pending', 'main'), 1)
  const stored = new DeliverySizes()
  stored.add(fields('pending', 'main'), 1)
  stored.add(fields('failed', 'other', 7), 1)
  sizes.addAll(stored)
  expect(sizes.of('main')).toEqual({ unfinished: 20, finished: 0 })
  expect(sizes.of('other')).toEqual({ unfinished: 0, finished: 7 })
  expect(sizes.beyond(6)).toEqual(new Map([['other', 7]]))
  expect(sizes.beyond(7)).toEqual(new Map())
})

test.each([
  ['unfinished', 'pending', UNFINISHED_CHARACTERS_MAX],
  ['finished', 'failed', 2 * FINISHED_CHARACTERS_MAX],
])(
  'a mount with too many %s characters has no room, and others have',
  { tags: ['slow'] },
  (_, state, max) => {
    const sizes = new DeliverySizes()
    const half = fields(state, 'main', max / 2)
    sizes.add(half, 1)
    expect(sizes.hasRoom('main')).toBe(true)
    sizes.add(half, 1)
    expect([sizes.hasRoom('main'), sizes.hasRoom('other')]).toEqual([false, true])
    sizes.add(half, -1)
    expect(sizes.hasRoom('main')).toBe(true)
  },
)
